"""Responses in the forms that Go's net/http and go-restful write."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import chain
from typing import Any

import msgspec
from aiohttp import hdrs, web

JSON_TYPE = "application/json"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
SERVER = "fake-kubelet"
_TEXT_TYPE = "text/plain; charset=utf-8"
_NOSNIFF = {"X-Content-Type-Options": "nosniff"}
_CHUNK_BYTES = 16 * 1024  # what a TLS record holds


def text_response(text: str, *, status: int = 200, allow: str = "") -> web.Response:
    """Return plain text as go-restful writes it; characters that UTF-8 cannot encode are replaced."""
    headers = {hdrs.CONTENT_TYPE: _TEXT_TYPE, **({hdrs.ALLOW: allow} if allow else {})}
    return web.Response(body=text.encode(errors="replace"), status=status, headers=headers)


def http_error(text: str, *, status: int) -> web.Response:
    """Return an error as Go's http.Error writes it."""
    response = text_response(f"{text}\n", status=status)
    response.headers.update(_NOSNIFF)
    return response


def page_not_found() -> web.Response:
    """Return the 404 of Go's ServeMux and of its file server."""
    return http_error("404 page not found", status=404)


def temporary_redirect(location: str, method: str) -> web.Response:
    """Return the redirect of Go's ServeMux to the canonical spelling of a path."""
    headers = {hdrs.LOCATION: location}
    if method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
        return web.Response(status=307, headers=headers)
    body = f'<a href="{escape(location)}">Temporary Redirect</a>.\n\n'
    return web.Response(status=307, text=body, content_type="text/html", headers=headers)


def json_response(body: Any, *, status: int = 200, indent: int | None = None, nosniff: bool = False) -> web.Response:
    """Return an object as JSON."""
    headers = {hdrs.CONTENT_TYPE: JSON_TYPE, **(_NOSNIFF if nosniff else {})}
    return web.Response(body=encode_json(body, indent=indent), status=status, headers=headers)


def encode_json(body: Any, *, indent: int | None = None) -> bytes:
    """Return an object as JSON, in one line or indented."""
    text = msgspec.json.encode(body)
    return text if indent is None else msgspec.json.format(text, indent=indent)


async def stream_response(request: web.BaseRequest, parts: Iterable[bytes], *, content_type: str) -> web.StreamResponse:
    """Send any number of parts of any size as one body, and return the response.

    No more is in memory than one part and what the client has not read yet; other tasks get a turn after each chunk.
    """
    chunks = _chunks(parts)
    headers, first, second = {hdrs.CONTENT_TYPE: content_type}, next(chunks, b""), next(chunks, None)
    if second is None:
        return web.Response(body=first, headers=headers)
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with abort_on_error(request):
        for chunk in chain((first, second), chunks):
            await response.write(chunk)
            await asyncio.sleep(0)
    return response


@contextmanager
def abort_on_error(request: web.BaseRequest) -> Iterator[None]:
    """Abort the connection if the rest of a body cannot be sent: its length, or its last chunk, was promised."""
    try:
        yield
    except BaseException as error:
        if request.transport:
            request.transport.abort()
        if not isinstance(error, ConnectionError):  # or it was the client who left
            raise


def _chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    chunk = bytearray()
    for part in parts:
        for start in range(0, len(part), _CHUNK_BYTES):
            chunk += part[start : start + _CHUNK_BYTES]
            if len(chunk) >= _CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
    if chunk:
        yield bytes(chunk)
