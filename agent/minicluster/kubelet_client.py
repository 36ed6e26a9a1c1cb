"""The way from the embedded cluster to the kubelets of its nodes: logs, upgraded connections, the proxy, metrics."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from agent.minicluster.kubelet_location import KubeletLocation, kubelet_address, kubelet_port
from agent.minicluster.node_strategy import NODES
from agent.minicluster.pod_strategy import PODS
from agent.minicluster.status_errors import StatusError, bad_request, details, object_not_found

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from agent.minicluster.object_store import ObjectStore

Headers = CIMultiDict[str] | CIMultiDictProxy[str]

_IN_PATHS = "/:@!$&'()*+,;=~"
_CONNECT_SECONDS = 10.0
_READ_SECONDS = 10.0
_ERROR_BYTES = 50_000
_MOST_UNSENT_BYTES = 1024 * 1024
_PAUSE_SECONDS = 0.05
_HOP_BY_HOP = {"connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade"}
_NOT_PASSED_ON = {*_HOP_BY_HOP, "host", "authorization", "content-length"}


class KubeletClient:
    """Sends requests to kubelets, as their API server; `host` is where all of them listen, if not where they say."""

    def __init__(self, store: ObjectStore, *, token: str, host: str = "") -> None:
        self._store = store
        self._host = host
        self._authorization = {hdrs.AUTHORIZATION: f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def read(self, location: KubeletLocation) -> str:
        """Return what a kubelet answers to a GET. Raises StatusError if that is an error, or does not come."""
        url = self._url(location)
        try:
            async with asyncio.timeout(_READ_SECONDS), self._request("GET", url) as response:
                await _check(response, location.node_name)
                return await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _UnreachableError(url, error) from error

    async def log(self, request: web.Request, location: KubeletLocation, pod_name: str) -> web.StreamResponse:
        """Answer with the log of a container, as it comes in. Raises StatusError if the kubelet has none."""
        async with self._request("GET", self._url(location)) as response:
            await _check(response, pod_name)
            return await _stream(request, response, {hdrs.CONTENT_TYPE: "text/plain"})

    async def upgrade(self, request: web.Request, location: KubeletLocation) -> web.StreamResponse:
        """Connect the client with a kubelet, in the protocol that both of them speak after their first exchange."""
        if not _asks_for_upgrade(request):
            raise bad_request("Upgrade request required")
        headers = _passed_on(request.headers)
        headers.update({hdrs.CONNECTION: "Upgrade", hdrs.UPGRADE: request.headers[hdrs.UPGRADE]})
        async with self._request(request.method, self._url(location), headers) as response:
            if response.status == 101:
                return await _tunnel(request, response)
            return await _stream(request, response, _answered(response.headers))

    async def proxy(self, request: web.Request, node_name: str) -> web.StreamResponse:
        """Pass a request for /api/v1/nodes/NAME/proxy/… on to a kubelet, and the answer back."""
        *home, path = quote(request.path, safe=_IN_PATHS).split("/", 6)
        if len(home) < 6:
            raise web.HTTPMovedPermanently(f"{request.path}/{_with_mark(request.rel_url.raw_query_string)}")
        location = KubeletLocation(node_name, f"/{path}", request.rel_url.raw_query_string)
        if _asks_for_upgrade(request):
            return await self.upgrade(request, location)
        url, body = self._url(location), await request.read()
        try:
            async with self._request(request.method, url, _passed_on(request.headers), body or None) as response:
                headers = _answered(response.headers)
                if (place := headers.get(hdrs.LOCATION, "")).startswith("/"):
                    headers[hdrs.LOCATION] = "/".join(home) + place
                return await _stream(request, response, headers)
        except _UnreachableError as error:
            message = f"error trying to reach service: {error.message}"
            raise StatusError(503, "ServiceUnavailable", message) from error

    def _url(self, location: KubeletLocation) -> URL:
        node = self._store.get(NODES.key, location.node_name)
        if node is None:
            raise object_not_found(NODES, location.node_name)
        host, port = (self._host, kubelet_port(node)) if self._host else kubelet_address(node)
        address = f"[{host}]" if ":" in host else host
        return URL(f"https://{address}:{port}{location.path}{_with_mark(location.query)}", encoded=True)

    @asynccontextmanager
    async def _request(
        self, method: str, url: URL, headers: CIMultiDict[str] | None = None, body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = _new_session()
        sent = CIMultiDict(headers or {})
        sent.update(self._authorization)
        try:
            response = await self._session.request(method, url, headers=sent, data=body, allow_redirects=False)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _UnreachableError(url, error) from error
        async with response:
            yield response


class _UnreachableError(StatusError):
    """A kubelet does not answer."""

    def __init__(self, url: URL, error: Exception) -> None:
        number = getattr(getattr(error, "os_error", error), "errno", None)
        reason = f"connect: {os.strerror(number).lower()}" if number else str(error) or "i/o timeout"
        super().__init__(500, "", f"dial tcp {url.host}:{url.port}: {reason}")


def _with_mark(query: str) -> str:
    return f"?{query}" if query else ""


def _new_session() -> aiohttp.ClientSession:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # as an API server without --kubelet-certificate-authority
    context.verify_mode = ssl.CERT_NONE
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        auto_decompress=False,
        skip_auto_headers=(hdrs.USER_AGENT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE),
    )


async def _check(response: aiohttp.ClientResponse, name: str) -> None:
    """Raise StatusError for the error of a kubelet, in the form in which an API server passes it on."""
    if response.status in {200, 206}:
        return
    text = (await response.content.read(_ERROR_BYTES)).decode(errors="replace")
    if response.status == 500:
        raise StatusError(500, "InternalError", f"Internal error occurred: {text}", {"causes": [{"message": text}]})
    if response.status == 400:
        raise bad_request(text)
    if response.status == 404:
        message = f"the server could not find the requested resource ( {PODS.plural}/log {name})"
        raise StatusError(404, "NotFound", message, details(name, "", PODS.plural))
    raise StatusError(response.status, "", text)


async def _stream(
    request: web.Request, response: aiohttp.ClientResponse, headers: Mapping[str, str] | CIMultiDict[str]
) -> web.StreamResponse:
    """Answer with the status and the body of a kubelet's response, part by part as it arrives."""
    answer = web.StreamResponse(status=response.status, headers=headers)
    await answer.prepare(request)
    async for part in response.content.iter_any():
        await answer.write(part)
    await answer.write_eof()
    return answer


def _passed_on(headers: Headers) -> CIMultiDict[str]:
    """Return the headers of a request that are meant for the kubelet; the client's credentials are not."""
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON)


def _answered(headers: Headers) -> CIMultiDict[str]:
    """Return the headers of a kubelet's response that are meant for the client."""
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP)


def _asks_for_upgrade(request: web.Request) -> bool:
    return hdrs.UPGRADE in request.headers and "upgrade" in request.headers.get(hdrs.CONNECTION, "").lower()


async def _tunnel(request: web.Request, response: aiohttp.ClientResponse) -> web.StreamResponse:
    """Pass bytes on in both directions until one side ends."""
    headers = _answered(response.headers)
    headers.update({hdrs.CONNECTION: "Upgrade", hdrs.UPGRADE: response.headers.get(hdrs.UPGRADE, "")})
    answer = web.StreamResponse(status=101, headers=headers)
    await answer.prepare(request)
    answer.force_close()
    ended = asyncio.Event()
    connection = response.connection
    if connection is None or connection.protocol is None or connection.transport is None or request.transport is None:
        return answer  # one side has left already
    connection.protocol.set_parser(_Copy(connection.transport, request.transport, ended), None)
    client: Any = request.protocol
    client.set_parser(_Copy(request.transport, connection.transport, ended))
    try:
        await ended.wait()
    finally:
        connection.transport.close()
    return answer


class _Copy:
    """Writes what one connection receives to another one: a parser, in the terms of aiohttp's protocols."""

    def __init__(self, source: asyncio.Transport, target: asyncio.Transport, ended: asyncio.Event) -> None:
        self._source = source
        self._target = target
        self._ended = ended

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Pass data on; the source waits while the target is slow."""
        self._target.write(data)
        if self._target.get_write_buffer_size() > _MOST_UNSENT_BYTES:
            self._source.pause_reading()
            asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._resume)
        return False, b""

    def feed_eof(self) -> None:
        """End the tunnel."""
        self._ended.set()

    def set_exception(self, *_: object) -> None:
        """End the tunnel, of which one side failed."""
        self._ended.set()

    def _resume(self) -> None:
        if self._source.is_closing():
            return
        if self._target.get_write_buffer_size() > _MOST_UNSENT_BYTES:
            asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._resume)
        else:
            self._source.resume_reading()
