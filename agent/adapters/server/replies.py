"""Answers in the forms that a kubelet has for them."""

import json
from html import escape
from typing import Any

from aiohttp import hdrs, web

JSON = "application/json"
SERVER = "fake-kubelet"
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}


def plain(text: str, *, status: int = 200, allow: str = "") -> web.Response:
    """Plain text as go-restful writes it."""
    return web.Response(text=text, status=status, headers={hdrs.ALLOW: allow} if allow else None)


def fault(text: str, *, status: int) -> web.Response:
    """An error as Go's http.Error writes it."""
    return web.Response(text=f"{text}\n", status=status, headers=_NO_SNIFFING)


def not_found() -> web.Response:
    """What Go's mux, and its file server, say of a path that they do not know."""
    return fault("404 page not found", status=404)


def moved(location: str, method: str) -> web.Response:
    """Go's mux knows the path under another spelling."""
    headers = {hdrs.LOCATION: location}
    if method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
        return web.Response(status=307, headers=headers)
    body = f'<a href="{escape(location)}">Temporary Redirect</a>.\n\n'
    return web.Response(status=307, text=body, content_type="text/html", headers=headers)


def as_json(
    body: Any, *, status: int = 200, indent: int | None = None, end: str = "", careful: bool = False
) -> web.Response:
    """An object."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(body, indent=indent, separators=separators, ensure_ascii=False) + end
    headers = {hdrs.CONTENT_TYPE: JSON, **(_NO_SNIFFING if careful else {})}
    return web.Response(body=text.encode(), status=status, headers=headers)
