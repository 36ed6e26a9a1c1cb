"""Token discovery as in kubeadm: whether the cluster that answers is the one of the token and the pins."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.core.errors import ConfigError
from agent.core.x509 import Certificate

KUBECONFIG_KEY = "kubeconfig"
_SIGNATURE_PREFIX = "jws-kubeconfig-"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class Distrusted(ConfigError):
    """The cluster that answered is not the one that the token or the pins name."""


class Token(NamedTuple):
    """A bootstrap token: the first part is a name, the second one a secret."""

    id: str
    secret: str

    def __repr__(self) -> str:
        return f"Token({self.id}.…)"  # it may end up in a log


def parse_token(text: str) -> Token:
    """Read a bootstrap token; raise a ConfigError that does not repeat it where it is none."""
    match = _TOKEN.fullmatch(text)
    if not match:
        raise ConfigError('the bootstrap token is not of the form "[a-z0-9]{6}.[a-z0-9]{16}"')
    return Token(match[1], match[2])


def parse_pins(texts: Iterable[str]) -> frozenset[str]:
    """Return the hashes of `--discovery-token-ca-cert-hash`, in lower case."""
    return frozenset(_pin(text) for text in texts)


def _pin(text: str) -> str:
    kind, colon, value = text.partition(":")
    if not colon or ":" in value:
        raise ConfigError(
            'invalid discovery token CA certificate hash: invalid hash, expected "format:hex-value". '
            "Known format(s) are: sha256"
        )
    if kind.lower() != "sha256":
        raise ConfigError(
            f'invalid discovery token CA certificate hash: unknown hash format "{kind}". Known format(s) are: sha256'
        )
    if not _SHA256.fullmatch(value):
        raise ConfigError(f'invalid discovery token CA certificate hash: invalid hash "{text}", expected 64 hex digits')
    return value.lower()


def signed_kubeconfig(data: Mapping[str, str], token: Token) -> str | None:
    """Return the kubeconfig of cluster-info if the token signs it; None while it has no signature of this token."""
    content = data.get(KUBECONFIG_KEY)
    if not content:
        raise Distrusted(
            f"there is no {KUBECONFIG_KEY} key in the cluster-info ConfigMap. "
            "This API Server isn't set up for token bootstrapping, can't connect"
        )
    signature = data.get(f"{_SIGNATURE_PREFIX}{token.id}")
    if not signature:
        return None
    if not _is_signed(signature, content, token):
        raise Distrusted("failed to verify JWS signature of received cluster info object, can't trust this API Server")
    return content


def check_pins(authorities: Iterable[Certificate], pins: frozenset[str]) -> None:
    """Raise Distrusted where none of the authorities is pinned."""
    hashes = [hashlib.sha256(authority.public_key).hexdigest() for authority in authorities]
    if not pins.intersection(hashes):
        public_keys = ":".join(f"sha256:{text}" for text in hashes)
        raise Distrusted(
            f'cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "{public_keys}" are pinned'
        )


def _is_signed(signature: str, content: str, token: Token) -> bool:
    """Verify a JWS with detached content. RFC 7515, appendix F"""
    header, _, tag = signature.partition("..")
    try:
        fields = json.loads(_decoded(header))
        digest = _decoded(tag)
    except (ValueError, RecursionError):
        return False
    if not isinstance(fields, dict) or fields.get("alg") != "HS256" or fields.get("kid") != token.id:
        return False
    payload = base64.urlsafe_b64encode(content.encode()).rstrip(b"=")
    expected = hmac.digest(token.secret.encode(), header.encode() + b"." + payload, "sha256")
    return hmac.compare_digest(digest, expected)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
