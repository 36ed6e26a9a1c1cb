"""Who asks the kubelet's API, and what they would have to be allowed."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.core.model import Object
from agent.core.x509 import Certificate

_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_AUTHENTICATED = "system:authenticated"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."  # noqa: S105  the mark before a token
_BASE64URL = re.compile("[A-Za-z0-9_-]*")  # without padding
# kubelet v1.36: server/auth.go. These are tried before what the second table says …
_FINER = {"/pods": "pods", "/healthz": "healthz", "/configz": "configz", "/runningpods": "pods"}
# … and these stand alone, without `proxy`.
_OWN = {
    "/stats": "stats",
    "/metrics": "metrics",
    "/logs": "log",
    "/checkpoint": "checkpoint",
    "/statusz": "statusz",
    "/flagz": "configz",
}


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, as the API server's authorizers know them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


def verb(method: str) -> str:
    """What a method is called in a rule; empty for one that no rule names."""
    return _VERBS.get(method, "")


def subresources(path: str) -> tuple[str, ...]:
    """The subresources of nodes of which one must be allowed, in the order in which they are tried."""
    finer = tuple(name for root, name in _FINER.items() if _is_below(path, root))
    own = next((name for root, name in _OWN.items() if _is_below(path, root)), "proxy")
    return (*finer, own)


def access_question(user: User, verb: str, subresource: str, node_name: str) -> Object:
    """The spec of a SubjectAccessReview."""
    attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": node_name}
    question: Object = {"resourceAttributes": attributes, "user": user.name, "groups": list(user.groups)}
    if user.uid:
        question["uid"] = user.uid
    if user.extra:
        question["extra"] = {key: list(values) for key, values in user.extra.items()}
    return question


def is_allowed(status: Object) -> bool:
    """What a SubjectAccessReview says; a ValueError if it says both."""
    allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
    if allowed and denied:
        raise ValueError("webhook subject access review returned both allow and deny response")
    return allowed


def reviewed_user(status: Object) -> User | None:
    """Whom a TokenReview names, if anybody; a ValueError if it says what is wrong, or nothing at all."""
    if not status.get("authenticated"):
        if fault := status.get("error"):
            raise ValueError(str(fault))
        return None
    told = status.get("user")
    if not isinstance(told, dict) or not isinstance(told.get("username"), str):
        raise ValueError("the token review names nobody")  # noqa: TRY004  it is the answer that is wrong
    groups = tuple(str(group) for group in told.get("groups") or ())
    return User(told["username"], _with_authenticated(groups), told.get("uid") or "", told.get("extra") or {})


def certified_user(certificate: Certificate, der: bytes) -> User | None:
    """Whom a client certificate names: the common name in the groups of its organizations."""
    if not certificate.common_name:
        return None
    credential = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    groups = _with_authenticated(certificate.organizations)
    return User(certificate.common_name, groups, extra={_CREDENTIAL: (credential,)})


def bearer_token(authorization: str) -> str:
    """The token of an Authorization header; empty if there is none."""
    scheme, _, rest = authorization.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def is_websocket(upgrade: str, connection: Iterable[str]) -> bool:
    """Whether the Upgrade header and all Connection headers of a request ask for a WebSocket."""
    return upgrade.lower() == "websocket" and any("upgrade" in header.lower() for header in connection)


def websocket_token(protocols: Iterable[str]) -> str:
    """The token among the protocols of a WebSocket; empty if there is none, a ValueError if they make no sense.

    apiserver v0.36: authentication/request/websocket
    """
    names = [name.strip() for header in protocols for name in header.split(",")]
    marked = [name.removeprefix(_WEBSOCKET_TOKEN) for name in names if name.startswith(_WEBSOCKET_TOKEN)]
    if not marked:
        return ""
    if len(marked) > 1:
        raise ValueError("multiple base64.bearer.authorization tokens specified")
    (encoded,) = marked
    if not _BASE64URL.fullmatch(encoded) or len(encoded) % 4 == 1:
        raise ValueError("invalid base64.bearer.authorization token encoding")
    try:
        token = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except UnicodeDecodeError as error:
        raise ValueError("invalid base64.bearer.authorization token") from error
    if token and len(names) == 1:
        raise ValueError("missing additional subprotocol")
    return token


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
