"""Who may use the embedded cluster: the bearer of its token, and no web page; and what it says of other tokens."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from typing import TYPE_CHECKING

from agent.minicluster.csr_strategy import ADMIN
from agent.minicluster.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from agent.core.model import Object

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z.-]+)(:[0-9]+)?")
_KUBELET_CLIENT = "kube-apiserver-kubelet-client"  # as kubeadm names the API server towards kubelets


class Authenticator:
    """Checks requests, and reviews the tokens that others were shown.

    `kubelet_token` is what this cluster itself shows to nodes: a node that keeps it can do nothing here with it.
    """

    def __init__(self, *, host: str, token: str, usernames: Mapping[str, str]) -> None:
        self.kubelet_token = secrets.token_urlsafe(32)
        self._host = host
        self._token = token.encode()
        self._usernames = {token: str(ADMIN["username"]), self.kubelet_token: _KUBELET_CLIENT, **usernames}

    def check_origin(self, request: web.Request) -> None:
        """Refuse requests of web pages: cross-origin ones, and those of a site whose name points to this address."""
        if "Origin" in request.headers or not _is_own_host(request.headers.getall("Host", []), self._host):
            raise StatusError(403, "Forbidden", "forbidden: web pages cannot use this cluster", {})

    def check_token(self, request: web.Request) -> None:
        """Refuse requests without the token of the cluster."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(errors="replace"), self._token):
            raise StatusError(401, "Unauthorized", "Unauthorized")

    def token_status(self, review: Object) -> Object:
        """Return the status of a TokenReview: the user of the bearer token, or that there is none."""
        username = self._usernames.get((review.get("spec") or {}).get("token", ""))
        if username is None:
            return {"user": {}, "error": "unknown token"}
        return {"authenticated": True, "user": {"username": username, "groups": ["system:authenticated"]}}


def _is_own_host(hosts: Sequence[str], own: str) -> bool:
    """Whether the Host header is an IP address, localhost or the name of this server; DNS may point others here."""
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if match is None:
        return False
    name = match[1].strip("[]").lower()
    if name in {"localhost", own.lower()}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
