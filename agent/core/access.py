"""Who sends a request to the kubelet's API, and which rules must allow it."""

import base64
import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from agent.core.model import Object
from agent.core.x509 import Certificate

K = TypeVar("K")
V = TypeVar("V")

_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_AUTHENTICATED = "system:authenticated"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_WEBSOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."  # noqa: S105  the prefix of a token
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
    """A user, as the API server's authorizers identify them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


def verb(method: str) -> str:
    """Return the verb of a method in an RBAC rule; empty where it has none."""
    return _VERBS.get(method, "")


def subresources(path: str) -> tuple[str, ...]:
    """Return the subresources of nodes of which one must be allowed, in the order in which they are tried."""
    finer = tuple(name for root, name in _FINER.items() if _is_below(path, root))
    own = next((name for root, name in _OWN.items() if _is_below(path, root)), "proxy")
    return (*finer, own)


def access_review_spec(user: User, verb: str, subresource: str, node_name: str) -> Object:
    """Return the spec of a SubjectAccessReview."""
    attributes = {"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource, "name": node_name}
    spec: Object = {"resourceAttributes": attributes, "user": user.name, "groups": list(user.groups)}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    return spec


def is_allowed(status: Object) -> bool:
    """Return whether a SubjectAccessReview allows; raise ValueError if it allows and denies."""
    allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
    if allowed and denied:
        raise ValueError("webhook subject access review returned both allow and deny response")
    return allowed


def reviewed_user(status: Object) -> User | None:
    """Return the user of a TokenReview, None without one; raise ValueError for an error or an invalid answer."""
    if not status.get("authenticated"):
        if fault := status.get("error"):
            raise ValueError(str(fault))
        return None
    user = status.get("user")
    if not isinstance(user, dict) or not isinstance(user.get("username"), str):
        raise ValueError("the token review names nobody")  # noqa: TRY004  it is the answer that is wrong
    groups = tuple(str(group) for group in user.get("groups") or ())
    return User(user["username"], _with_authenticated(groups), user.get("uid") or "", user.get("extra") or {})


def certified_user(certificate: Certificate, der: bytes) -> User | None:
    """Return the user of a client certificate: its common name, in the groups of its organizations."""
    if not certificate.common_name:
        return None
    credential = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    groups = _with_authenticated(certificate.organizations)
    return User(certificate.common_name, groups, extra={_CREDENTIAL: (credential,)})


def bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header; empty if there is none."""
    scheme, _, rest = authorization.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def is_websocket(upgrade: str, connection: Iterable[str]) -> bool:
    """Return whether the Upgrade header and all Connection headers of a request ask for a WebSocket."""
    return upgrade.lower() == "websocket" and any("upgrade" in header.lower() for header in connection)


def websocket_token(protocols: Iterable[str]) -> str:
    """Return the token among the protocols of a WebSocket, empty without one; raise ValueError for an invalid one.

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


class TTLCache(Generic[K, V]):
    """Keeps each answer of a review until it expires, and evicts the least recently used one when it is full.

    The caller passes the time.
    """

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K, now: float) -> V | None:
        """Return the value; None if there is none or it has expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires_at, value = entry
        if now >= expires_at:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, *, expires_at: float) -> None:
        """Store a value, in place of the one that has this key."""
        self._entries[key] = (expires_at, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
