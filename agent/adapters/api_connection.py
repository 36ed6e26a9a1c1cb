"""A pool of connections to the API server with a deadline of its own; the errors of aiohttp stop here."""

import asyncio.sslproto
import logging
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, Literal
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
    one_line,
    page,
    refusal,
    watch_event,
)
from agent.adapters.credentials import Credentials
from agent.adapters.transport import DedicatedResolver, enable_keepalive
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.metrics import Counter, Family, Histogram
from agent.core.model import Object
from agent.core.times import format_seconds
from agent.ports import Reachability, Unauthorized, Unavailable, Untrusted

log = logging.getLogger(__name__)

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
ContentType = Literal["application/json", "application/strategic-merge-patch+json"]

JSON: Final = "application/json"
_V6 = logging.INFO - 6
_DEFAULT_TIMEOUT_SECONDS = 30.0
_IDLE_SECONDS = 90.0  # as Go's http.Transport
_WATCH: Final = "WATCH"
_CONNECT_SECONDS = 10.0
_READ_BYTES = 16 * 1024
_MOST_UNREAD = 8  # as Go: a server says 100 Continue no more than five times
_LATE_SECONDS = 10.0  # how much later than promised a server may end a watch
_SILENCE_SECONDS = 150.0  # a server sends bookmarks each minute
_NO_STATUS = "<error>"
_BUCKETS_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_FAULTS = (aiohttp.ClientError, OSError, TimeoutError, ValueError, EOFError)

if hasattr(asyncio.sslproto.SSLProtocol, "max_size"):
    # asyncio sets aside 256 KiB for each TLS connection; a heartbeat is 1 KiB.
    asyncio.sslproto.SSLProtocol.max_size = _READ_BYTES


class RequestMetrics:
    """Counts requests and how they were answered, as client-go does; all connections of a process share one."""

    def __init__(self) -> None:
        self._requests = Counter(
            "rest_client_requests_total",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
        )
        self._durations = Histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            ("host", "verb"),
            _BUCKETS_SECONDS,
        )

    def answered(self, method: Method, host: str, status: int | None, took_seconds: float) -> None:
        """Count a request by the status of its answer; None if there was no answer."""
        self._requests.add(_NO_STATUS if status is None else str(status), host, method)
        self._durations.observe(host, method, value=took_seconds)

    def families(self) -> Iterator[Family]:
        """The same as metrics."""
        yield self._requests.family()
        yield self._durations.family()


class _BoundedResponseHandler(ResponseHandler):
    """Closes the connection of a server that sends more answers than were requested, before they fill the memory."""

    def connection_made(self, transport: Any) -> None:
        """Read the connection in small pieces, without TLS too: a large one may hold thousands of heads."""
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
        self._resolver = DedicatedResolver()
        connector = aiohttp.TCPConnector(
            ssl=credentials.tls, limit=0, keepalive_timeout=_IDLE_SECONDS, resolver=self._resolver
        )
        connector._factory = partial(_BoundedResponseHandler, loop=asyncio.get_running_loop())  # type: ignore[assignment]
        headers = [*credentials.headers, ("Accept-Encoding", "identity"), ("User-Agent", user_agent)]
        if credentials.authorization:
            headers.append(("Authorization", credentials.authorization))
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            auto_decompress=False,  # a few bytes could become gigabytes
        )
        self._request = partial(
            self._session.request,
            proxy=credentials.proxy,
            server_hostname=credentials.tls_server_name or None,
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
        method: Method,
        path: str,
        query: list[tuple[str, str]],
        timeout: aiohttp.ClientTimeout,
        *,
        body: Object | None = None,
        content_type: ContentType = JSON,
    ) -> aiohttp.ClientResponse:
        """Send one request, and return when the head of its answer has come."""
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
        fields = {"verb": method, "url": str(response.url), "status": status, "milliseconds": round(took * 1000)}
        log.log(_V6, "Response", fields)  # as client-go's round_trippers.go
        return response

    async def retire(self, *, at_once: bool) -> None:
        """Take no more requests, and close with the last one that is under way, or at once."""
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
        reachability: Reachability | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds or _DEFAULT_TIMEOUT_SECONDS
        self._timeout = aiohttp.ClientTimeout(total=self._timeout_seconds)
        # A heartbeat is tried five times in a row: all of them together must fit into a lease.
        self._most_retry_after_seconds = timeout_seconds / 4 if timeout_seconds else None
        # The server gives up when we do; kubelet says so for heartbeats only.
        self._query = [("timeout", format_seconds(timeout_seconds))] if timeout_seconds else []
        # The part before the slash becomes the manager in managedFields, as for a kubelet.
        self._user_agent = f"kubelet/{KUBELET_VERSION} (linux/{architecture}) fake-kubelet/{__version__}"
        self._on_unauthorized = on_unauthorized
        self._reachability = reachability
        self._streams = 0
        self._credentials = credentials
        self.metrics = metrics or RequestMetrics()
        self._current = _Session(credentials, self._user_agent, self.metrics)

    async def use(self, credentials: Credentials) -> None:
        """Send the next requests with other credentials; requests under way are not cut off, watches are."""
        self._credentials = credentials
        old, self._current = self._current, _Session(credentials, self._user_agent, self.metrics)
        await old.retire(at_once=self._streams > 0)

    async def close(self) -> None:
        """Close all connections."""
        await self._current.close()

    async def call(
        self,
        method: Method,
        path: str,
        body: Object | None = None,
        content_type: ContentType = JSON,
        query: Sequence[tuple[str, str]] = (),
    ) -> Object:
        """Send a request and return the object in its answer; raise ApiError if there is none."""
        return decoded(200, await self._content(method, path, query, body=body, content_type=content_type))

    async def page(self, path: str, query: Sequence[tuple[str, str]]) -> tuple[Page, int]:
        """Return a page of a list and its size in bytes; raise TooLarge if the caller has to request a smaller one."""
        content = await self._content("GET", path, query, MOST_PAGE_BYTES)
        return page(content), len(content)

    async def _content(
        self, method: Method, path: str, query: Sequence[tuple[str, str]], most_bytes: int = MOST_BYTES, **sent: Any
    ) -> Content:
        async with self._current.in_use() as session:
            with self._translated(method, path):
                with self._noticed(method, path):
                    response = await session.send(method, path, [*self._query, *query], self._timeout, **sent)
                async with response:
                    return await self._success(response, most_bytes)

    async def stream(
        self, path: str, query: list[tuple[str, str]], *, seconds: float
    ) -> AsyncGenerator[WatchEvent | None, None]:
        """Yield None when the server has opened the watch, then its events."""
        timeout = aiohttp.ClientTimeout(
            total=seconds + _LATE_SECONDS, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS
        )
        self._streams += 1
        try:
            async with self._current.in_use() as session:
                with self._translated(_WATCH, path):
                    with self._noticed(_WATCH, path):
                        response = await session.send("GET", path, query, timeout)
                    async with response:
                        if response.status != 200:
                            await self._success(response)
                        enable_keepalive(response)
                        yield None
                        async for text in _lines(response):
                            yield watch_event(text)
        finally:
            self._streams -= 1

    async def _success(self, response: aiohttp.ClientResponse, most_bytes: int = MOST_BYTES) -> Content:
        """Return the body of an answer that is a success; raise the error that any other answer means."""
        content = await _read(response, most_bytes)
        if 200 <= response.status < 300:
            return content
        error = refusal(response.status, decoded(response.status, content), response.headers.get("Retry-After"))
        if error.retry_after_seconds and self._most_retry_after_seconds is not None:
            error.retry_after_seconds = min(error.retry_after_seconds, self._most_retry_after_seconds)
        if isinstance(error, Unauthorized):
            self._on_unauthorized()  # perhaps newer credentials are there already
        raise error

    @contextmanager
    def _noticed(self, verb: Method | Literal["WATCH"], path: str) -> Iterator[None]:
        """Pass on whether a request was answered."""
        try:
            yield
        except _FAULTS as error:
            if self._reachability:
                self._reachability.unanswered(Unavailable(self._described(verb, path, error)))
            raise
        if self._reachability:
            self._reachability.answered()

    @contextmanager
    def _translated(self, verb: Method | Literal["WATCH"], path: str) -> Iterator[None]:
        """Raise errors of ours for those of the client library, which do not leave this module."""
        try:
            yield
        except aiohttp.ClientConnectorCertificateError as error:
            raise Untrusted(self._described(verb, path, error)) from error
        except _FAULTS as error:
            raise Unavailable(self._described(verb, path, error)) from error

    def _described(self, verb: Method | Literal["WATCH"], path: str, error: Exception) -> str:
        where = f'{verb.capitalize()} "{self._credentials.server}{path}"'
        if isinstance(error, TimeoutError) and verb == _WATCH:
            return f"{where}: nothing heard for too long"
        if isinstance(error, TimeoutError):
            return f"{where}: no answer within {format_seconds(self._timeout_seconds)}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            reason = getattr(error.certificate_error, "verify_message", error.certificate_error)
            hint = f"check certificate-authority in {self._credentials.source}"
            return f"{where}: certificate of the API server not trusted: {reason}; {hint}"
        return f"{where}: {one_line(_reason(error))}"


def _reason(error: Exception) -> str:
    """Return the text of an error in Go's words, without the URL of a proxy: there may be a password in it."""
    text = str(error) or type(error).__name__
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        text = f"TLS handshake failed: {error}"
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        text = f"dial tcp: lookup {error.host}: no such host"
    elif isinstance(error, aiohttp.ClientConnectorError):
        host = f"[{error.host}]" if ":" in error.host else error.host
        text = f"dial tcp {host}:{error.port}: connect: {_go_strerror(error.os_error)}"
    elif isinstance(error, OSError) and error.errno:
        text = f"read: {_go_strerror(error)}"
    elif isinstance(error, aiohttp.ServerDisconnectedError):
        text = "EOF"
    elif isinstance(error, aiohttp.ClientPayloadError):
        text = "unexpected EOF"
    elif isinstance(error, aiohttp.ClientResponseError):
        text = f"the proxy answered {error.status} {error.message}"
    elif isinstance(error, aiohttp.InvalidURL):
        text = "the address of the server, or of its proxy, is no URL"
    return text


def _go_strerror(error: OSError) -> str:
    """Return the text of an errno as Go has it."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


async def _read(response: aiohttp.ClientResponse, most_bytes: int) -> Content:
    """Read the body; raise TooLarge if it is larger than any object of ours can be."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > most_bytes:
            raise TooLarge(f"the answer is larger than {most_bytes} bytes")
    return body


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of the body; a line has one object, and the same limit as an answer with one."""
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
