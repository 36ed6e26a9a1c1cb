"""A pool of connections to the API server with a deadline of its own; the errors of aiohttp stop here."""

import asyncio.sslproto
import logging
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler
from msgspec.json import encode

from agent import __version__
from agent.adapters.answers import (
    MOST_BYTES,
    MOST_PAGE_BYTES,
    Content,
    Page,
    TooLarge,
    WatchEvent,
    decoded,
    page,
    printable,
    refusal,
    watch_event,
)
from agent.adapters.credentials import Credentials
from agent.adapters.keepalive import notice_silence
from agent.adapters.request_metrics import RequestMetrics
from agent.adapters.resolver import LaneResolver
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.model import Object
from agent.core.times import format_seconds
from agent.ports import Unauthorized, Unavailable, Untrusted

log = logging.getLogger(__name__)

JSON = "application/json"
_V6 = logging.INFO - 6
_DEFAULT_TIMEOUT_SECONDS = 30.0
_IDLE_SECONDS = 90.0  # as Go's http.Transport
_WATCH = "WATCH"
_CONNECT_SECONDS = 10.0
_READ_BYTES = 16 * 1024
_MOST_UNREAD = 8  # as Go: a server says 100 Continue no more than five times
_LATE_SECONDS = 10.0  # how much later than promised a server may end a watch
_SILENCE_SECONDS = 150.0  # a server sends bookmarks each minute
_FAULTS = (aiohttp.ClientError, OSError, TimeoutError, ValueError, EOFError)

if hasattr(asyncio.sslproto.SSLProtocol, "max_size"):
    # asyncio sets aside 256 KiB for each TLS connection; a heartbeat is 1 KiB.
    asyncio.sslproto.SSLProtocol.max_size = _READ_BYTES


class _Answers(ResponseHandler):
    """The answers of one connection: who sends more than were asked for is hung up on before they fill the memory."""

    def connection_made(self, transport: Any) -> None:
        """Take a connection; without TLS, too, it is read in pieces: a piece may hold thousands of heads."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take the head of an answer."""
        if len(self) < _MOST_UNREAD:
            super().feed_data(data, size)
        elif self.transport is not None:
            self.transport.abort()


class _Session:
    """Connections made with one set of credentials; a retired session closes when its last request is done."""

    def __init__(self, credentials: Credentials, user_agent: str, metrics: RequestMetrics) -> None:
        self._host = urlsplit(credentials.server).netloc
        self._metrics = metrics
        self._resolver = LaneResolver()
        connector = aiohttp.TCPConnector(
            ssl=credentials.tls, limit=0, keepalive_timeout=_IDLE_SECONDS, resolver=self._resolver
        )
        connector._factory = partial(_Answers, loop=asyncio.get_running_loop())  # type: ignore[assignment]
        configuration = credentials.configuration
        token = configuration.api_key.get("BearerToken")
        headers = [*credentials.headers, ("Accept-Encoding", "identity"), ("User-Agent", user_agent)]
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=[*headers, ("Authorization", token)] if token else headers,
            auto_decompress=False,  # a few bytes could become gigabytes
        )
        self._request = partial(
            self._session.request,
            proxy=configuration.proxy,
            proxy_headers=configuration.proxy_headers,
            server_hostname=configuration.tls_server_name or None,
            allow_redirects=False,  # a redirect is an answer, and a wrong one
        )
        self._server = credentials.server
        self._users = 0
        self._retired = False

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator["_Session"]:
        """Keep the session open while a request is under way."""
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            if self._retired and not self._users:
                await self.close()

    async def send(
        self,
        method: str,
        path: str,
        query: list[tuple[str, str]],
        timeout: aiohttp.ClientTimeout,
        *,
        body: Object | None = None,
        content_type: str = JSON,
    ) -> aiohttp.ClientResponse:
        """One request, up to the head of its answer."""
        began, status = time.monotonic(), None
        try:
            response: aiohttp.ClientResponse = await self._request(
                method,
                f"{self._server}{path}?{urlencode(query)}" if query else f"{self._server}{path}",
                headers={"Accept": JSON, "Content-Type": content_type},
                data=None if body is None else encode(body),
                timeout=timeout,
            )
            status = response.status
        finally:
            took = time.monotonic() - began
            self._metrics.answered(method, self._host, status, took)
        told = {"verb": method, "url": str(response.url), "status": status, "milliseconds": round(took * 1000)}
        log.log(_V6, "Response", told)  # as client-go's round_trippers.go
        return response

    async def retire(self, *, at_once: bool) -> None:
        """Take no more requests, and close, at the latest with the last one."""
        self._retired = True
        if at_once or not self._users:
            await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self._resolver.close()


class ApiConnection:
    """Requests to the API server on connections that nothing else uses, with a deadline."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        architecture: str,
        timeout_seconds: float | None = None,
        on_unauthorized: Callable[[], None] = lambda: None,
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds or _DEFAULT_TIMEOUT_SECONDS
        self._timeout = aiohttp.ClientTimeout(total=self._timeout_seconds)
        # A heartbeat is tried five times in a row: all of them together must fit into a lease.
        self._patience_seconds = timeout_seconds / 4 if timeout_seconds else None
        # The server gives up when we do; kubelet says so for heartbeats only.
        self._query = [("timeout", format_seconds(timeout_seconds))] if timeout_seconds else []
        # The part before the slash becomes the manager in managedFields, as for a kubelet.
        self._user_agent = f"kubelet/{KUBELET_VERSION} (linux/{architecture}) fake-kubelet/{__version__}"
        self._on_unauthorized = on_unauthorized
        self._streams = 0
        self._credentials = credentials
        self.metrics = metrics or RequestMetrics()
        self._current = _Session(credentials, self._user_agent, self.metrics)

    async def use(self, credentials: Credentials) -> None:
        """Speak with other credentials from now on; requests under way are not cut off, watches are."""
        self._credentials = credentials
        old, self._current = self._current, _Session(credentials, self._user_agent, self.metrics)
        await old.retire(at_once=self._streams > 0)

    async def close(self) -> None:
        """Close all connections."""
        await self._current.close()

    async def call(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = JSON,
        query: Sequence[tuple[str, str]] = (),
    ) -> Object:
        """One request; its answer as an object, or an ApiError."""
        return decoded(200, await self._content(method, path, query, body=body, content_type=content_type))

    async def page(self, path: str, query: Sequence[tuple[str, str]]) -> tuple[Page, int]:
        """A part of a list, and how many bytes it had; TooLarge where a smaller one has to be asked for."""
        content = await self._content("GET", path, query, MOST_PAGE_BYTES)
        return page(content), len(content)

    async def _content(
        self, method: str, path: str, query: Sequence[tuple[str, str]], most_bytes: int = MOST_BYTES, **sent: Any
    ) -> Content:
        async with self._current.in_use() as session:
            with self._translated(method, path):
                response = await session.send(method, path, [*self._query, *query], self._timeout, **sent)
                async with response:
                    return await self._yes(response, most_bytes)

    async def stream(
        self, path: str, query: list[tuple[str, str]], *, seconds: float
    ) -> AsyncGenerator[WatchEvent | None, None]:
        """The events of a watch; first nothing at all, as word that the server has opened it."""
        timeout = aiohttp.ClientTimeout(
            total=seconds + _LATE_SECONDS, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS
        )
        self._streams += 1
        try:
            async with self._current.in_use() as session:
                with self._translated(_WATCH, path):
                    async with await session.send("GET", path, query, timeout) as response:
                        if response.status != 200:
                            await self._yes(response)
                        notice_silence(response)
                        yield None
                        async for text in _lines(response):
                            yield watch_event(text)
        finally:
            self._streams -= 1

    async def _yes(self, response: aiohttp.ClientResponse, most_bytes: int = MOST_BYTES) -> Content:
        """What the server said, if it was a yes."""
        content = await _read(response, most_bytes)
        if 200 <= response.status < 300:
            return content
        error = refusal(response.status, decoded(response.status, content), response.headers.get("Retry-After"))
        if error.retry_after_seconds and self._patience_seconds is not None:
            error.retry_after_seconds = min(error.retry_after_seconds, self._patience_seconds)
        if isinstance(error, Unauthorized):
            self._on_unauthorized()  # perhaps newer credentials are there already
        raise error

    @contextmanager
    def _translated(self, method: str, path: str) -> Iterator[None]:
        """No exception of the client library leaves this module."""
        try:
            yield
        except aiohttp.ClientConnectorCertificateError as error:
            raise Untrusted(self._described(method, path, error)) from error
        except _FAULTS as error:
            raise Unavailable(self._described(method, path, error)) from error

    def _described(self, method: str, path: str, error: Exception) -> str:
        where = f'{method.capitalize()} "{self._credentials.server}{path}"'
        if isinstance(error, TimeoutError) and method == _WATCH:
            return f"{where}: nothing heard for too long"
        if isinstance(error, TimeoutError):
            return f"{where}: no answer within {format_seconds(self._timeout_seconds)}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            reason = getattr(error.certificate_error, "verify_message", error.certificate_error)
            hint = f"check certificate-authority in {self._credentials.source}"
            return f"{where}: certificate of the API server not trusted: {reason}; {hint}"
        return f"{where}: {printable(_told(error))}"


def _told(error: Exception) -> str:
    """An error's own words, but not those with the URL of a proxy in them: there may be a password in it."""
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return f"TLS handshake failed: {error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the proxy answered {error.status} {error.message}"
    if isinstance(error, aiohttp.InvalidURL):
        return "the address of the server, or of its proxy, is no URL"
    return str(error) or type(error).__name__


async def _read(response: aiohttp.ClientResponse, most_bytes: int) -> Content:
    """The body, unless it is larger than any object of ours can be."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > most_bytes:
            raise TooLarge(f"the answer is larger than {most_bytes} bytes")
    return body


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body line by line; a line has one object, and is as limited as an answer with one."""
    rest = bytearray()
    async for part in response.content.iter_any():
        *ends, tail = part.split(b"\n")
        for end in ends:
            rest += end
            line = bytes(rest)
            rest.clear()
            if line.strip():
                yield line
        rest += tail
        if len(rest) > MOST_BYTES:
            raise TooLarge(f"a line of the watch is larger than {MOST_BYTES} bytes")
