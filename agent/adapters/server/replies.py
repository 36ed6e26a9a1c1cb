"""Answers in the forms that a kubelet has for them."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import chain
from typing import Any

import msgspec
from aiohttp import hdrs, web

JSON = "application/json"
SERVER = "fake-kubelet"
_TEXT = "text/plain; charset=utf-8"
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_PIECE_BYTES = 16 * 1024  # what a TLS record holds


def plain(text: str, *, status: int = 200, allow: str = "") -> web.Response:
    """Plain text as go-restful writes it; what of it is no Unicode is replaced."""
    headers = {hdrs.CONTENT_TYPE: _TEXT, **({hdrs.ALLOW: allow} if allow else {})}
    return web.Response(body=text.encode(errors="replace"), status=status, headers=headers)


def fault(text: str, *, status: int) -> web.Response:
    """An error as Go's http.Error writes it."""
    answer = plain(f"{text}\n", status=status)
    answer.headers.update(_NO_SNIFFING)
    return answer


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
    headers = {hdrs.CONTENT_TYPE: JSON, **(_NO_SNIFFING if careful else {})}
    return web.Response(body=json_text(body, indent=indent) + end.encode(), status=status, headers=headers)


def json_text(body: Any, *, indent: int | None = None) -> bytes:
    """An object as JSON, in one line or indented."""
    text = msgspec.json.encode(body)
    return text if indent is None else msgspec.json.format(text, indent=indent)


async def streamed(request: web.BaseRequest, parts: Iterable[bytes], *, content_type: str) -> web.StreamResponse:
    """Any number of parts of any size as one body.

    No more is in memory than one part and what the client has not taken yet; everybody else gets a turn after each
    piece.
    """
    pieces = _pieces(parts)
    headers, first, second = {hdrs.CONTENT_TYPE: content_type}, next(pieces, b""), next(pieces, None)
    if second is None:
        return web.Response(body=first, headers=headers)
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with abort_on_error(request):
        for piece in chain((first, second), pieces):
            await response.write(piece)
            await asyncio.sleep(0)
    return response


@contextmanager
def abort_on_error(request: web.BaseRequest) -> Iterator[None]:
    """End the connection if the rest of a body cannot be sent: its length, or its last chunk, was promised already."""
    try:
        yield
    except BaseException as error:
        if request.transport:
            request.transport.abort()
        if not isinstance(error, ConnectionError):  # or it was the client who left
            raise


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for part in parts:
        for start in range(0, len(part), _PIECE_BYTES):
            piece += part[start : start + _PIECE_BYTES]
            if len(piece) >= _PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
    if piece:
        yield bytes(piece)
