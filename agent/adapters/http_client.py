"""An HTTP/1.1 client for one server: it keeps connections alive, and sends one request at a time on each.

aiohttp's client costs 193 µs of CPU for a lease renewal, this one 106: most of what a process with many nodes does.
"""

import asyncio
import asyncio.sslproto
import base64
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, cast
from urllib.parse import quote, unquote, urlsplit

from agent.adapters.http1 import HttpError, ResponseParser
from agent.adapters.reasons import blame, connection_reason, verify_reason
from agent.adapters.tls import client_context
from agent.adapters.transport import DedicatedResolver, connect

_IDLE_SECONDS = 90.0  # as Go's http.Transport
_MOST_IDLE = 32  # client-go has 25; a process with a thousand nodes uses more at once
_READ_BYTES = 16 * 1024
_MOST_UNREAD_BYTES = 64 * 1024
_IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})
_IN_PATHS: Final = "/%:@!$&'()*+,;=~"
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]*")  # most are, and quote() takes ten times as long to find that out

if hasattr(asyncio.sslproto.SSLProtocol, "max_size"):
    # asyncio sets aside 256 KiB for each TLS connection; a heartbeat is 1 KiB.
    asyncio.sslproto.SSLProtocol.max_size = _READ_BYTES


class CertificateError(HttpError):
    """The certificate of the server is not trusted."""

    def __init__(self, error: ssl.SSLCertVerificationError, server_name: str) -> None:
        super().__init__(verify_reason(error, server_name))
        self.blame = blame(error)


class _ClosedWhileIdleError(HttpError):
    """The server closed a connection before it sent a byte of the answer."""


class _Connection(asyncio.Protocol):
    """A connection that carries one request and its answer at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._response: ResponseParser | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: HttpError | None = None
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the connection in small pieces: what a server sends unasked is noticed before it fills the memory."""
        self.transport = cast("asyncio.Transport", transport)
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES

    def data_received(self, data: bytes) -> None:
        """Parse a piece of the answer; abort the connection if nobody has asked for it."""
        response = self._response
        if response is None or response.is_complete:
            self.transport.abort()
            return
        try:
            response.feed(data)
        except HttpError as error:
            self._error = error
            self.transport.abort()
        if len(response.body) > _MOST_UNREAD_BYTES and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer, or keep the reason why it will never be complete."""
        response = self._response
        if self._error is None and response is not None and not response.is_complete:
            kind = HttpError if response.has_begun else _ClosedWhileIdleError
            try:
                if exc is None:
                    response.feed_eof()
                else:
                    self._error = kind(connection_reason(exc))
            except HttpError as error:
                self._error = kind(str(error))
        self._wake()

    async def send(self, method: str, request: bytes) -> ResponseParser:
        """Send a request, and return when the head of its answer has arrived."""
        self._response = response = ResponseParser(method)
        self.transport.write(request)
        while not response.has_head:
            await self._wait()
        return response

    async def read_part(self, response: ResponseParser) -> bytearray:
        """Return what has arrived of the body, as soon as that is something; empty at its end."""
        while not response.body and not response.is_complete:
            await self._wait()
        part = response.take()
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        return part

    @property
    def is_open(self) -> bool:
        """Whether neither side has closed the connection."""
        return not self.transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """Whether the connection can take another request."""
        is_done = self._response is not None and self._response.is_reusable
        return is_done and self.is_open and not self.transport.get_write_buffer_size()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        """Wait until something has arrived; raise HttpError if nothing ever will."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


class Response:
    """An answer whose head has arrived; it holds its connection until the end of the `with` block."""

    def __init__(self, client: "HttpClient", connection: _Connection, parser: ResponseParser) -> None:
        self._client = client
        self._connection = connection
        self._parser = parser
        self.status = parser.status
        self.headers = parser.headers

    async def read_part(self) -> bytearray:
        """Return what has arrived of the body, as soon as that is something; empty at its end."""
        return await self._connection.read_part(self._parser)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client._release(self._connection)

    def abort(self) -> None:
        """Close the connection; whoever reads the body gets an HttpError."""
        self._connection.transport.abort()


@dataclass(frozen=True, slots=True)
class _Origin:
    """A server by its URL."""

    scheme: str
    host: str
    port: int
    path: str
    authorization: str  # the header for a user and a password in the URL

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse a URL; the error does not show it, as there may be a password in it."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
            user = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            authorization = f"Basic {base64.b64encode(user.encode()).decode()}" if parts.username else ""
            host.encode("ascii")
        except ValueError:
            raise HttpError("the address of the server, or of its proxy, is no URL") from None
        return cls(parts.scheme, host, port, quote(parts.path.rstrip("/"), _IN_PATHS), authorization)

    @property
    def authority(self) -> str:
        """The host and the port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HttpClient:
    """Sends requests to one server, directly or through a proxy, always with the same headers and credentials."""

    def __init__(
        self,
        server: str,
        *,
        tls: ssl.SSLContext | None = None,
        tls_server_name: str = "",
        proxy: str | None = None,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._url = server
        self._tls = tls
        self._tls_server_name = tls_server_name
        self._proxy_url = proxy
        self._headers = tuple(headers)
        self._resolver = DedicatedResolver()
        self._idle: list[_Connection] = []  # the one that was used last is at the end, and is used next
        self._in_use: set[_Connection] = set()
        self._is_retired = False
        self._expiry: asyncio.TimerHandle | None = None

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        content_type: str = "",
        connect_seconds: float | None = None,
    ) -> Response:
        """Send a request, and return when the head of its answer has arrived; raise HttpError if none does.

        The target is a path with a query, which is encoded already. As in Go, a request that may be repeated is sent
        again on a new connection if the server closed the old one at that moment.
        """
        request = self._request(method, target, body, content_type)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                try:
                    return await self._exchange(connection, method, request)
                except _ClosedWhileIdleError:
                    if method not in _IDEMPOTENT:
                        raise
                break
        async with asyncio.timeout(connect_seconds):
            connection = await self._dial()
        return await self._exchange(connection, method, request)

    def close_idle(self) -> None:
        """Close the connections that carry no request: after a failure, the others may be dead too."""
        while self._idle:
            self._idle.pop().transport.abort()

    def retire(self) -> None:
        """Close each connection as soon as it carries no request; the caller sends no more."""
        self._is_retired = True
        self.close_idle()
        if self._expiry is not None:
            self._expiry.cancel()
        self._resolver.close()

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        self.retire()
        for connection in self._in_use:
            connection.transport.abort()

    def _request(self, method: str, target: str, body: bytes | None, content_type: str) -> bytes:
        path, question_mark, query = target.partition("?")
        prefix, fixed = self._fixed
        encoded = path if _PLAIN_PATH.fullmatch(path) else quote(path, _IN_PATHS)
        head = f"{method} {prefix}{encoded}{question_mark}{query} HTTP/1.1\r\n{fixed}"
        if content_type:
            head += f"Content-Type: {content_type}\r\n"
        if body is None:
            return f"{head}\r\n".encode()
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    @cached_property
    def _server(self) -> _Origin:
        return _Origin.of(self._url)

    @property
    def _server_name(self) -> str:
        return self._tls_server_name or self._server.host.rstrip(".")

    @cached_property
    def _proxy(self) -> _Origin | None:
        return _Origin.of(self._proxy_url) if self._proxy_url else None

    @cached_property
    def _fixed(self) -> tuple[str, str]:
        """What stands before the path in each request, and the headers that all requests have."""
        prefix = self._server.path
        headers = [("Host", self._server.authority), *self._headers]
        if self._proxy and not self._tls:
            prefix = f"http://{self._server.authority}{prefix}"
            headers += self._proxy_headers
        return prefix, _header_lines(headers)

    @property
    def _proxy_headers(self) -> list[tuple[str, str]]:
        authorization = self._proxy.authorization if self._proxy else ""
        return [("Proxy-Authorization", authorization)] if authorization else []

    async def _exchange(self, connection: _Connection, method: str, request: bytes) -> Response:
        self._in_use.add(connection)
        try:
            return Response(self, connection, await connection.send(method, request))
        except BaseException:
            self._release(connection)
            raise

    def _release(self, connection: _Connection) -> None:
        """Keep a connection for the next request, or close it if the answer was not read to its end."""
        self._in_use.discard(connection)
        if self._is_retired or not connection.is_reusable or len(self._idle) >= _MOST_IDLE:
            connection.transport.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._expiry is None:
            self._expiry = loop.call_later(_IDLE_SECONDS, self._close_expired)

    def _close_expired(self) -> None:
        """Close the connections that have been idle for too long, and come back for the others."""
        self._expiry = None
        loop = asyncio.get_running_loop()
        while self._idle and self._idle[0].idle_since <= loop.time() - _IDLE_SECONDS:
            self._idle.pop(0).transport.abort()
        if self._idle:
            self._expiry = loop.call_at(self._idle[0].idle_since + _IDLE_SECONDS, self._close_expired)

    async def _dial(self) -> _Connection:
        """Open a connection to the server, through the proxy if there is one."""
        hop, loop, connection = self._proxy or self._server, asyncio.get_running_loop(), _Connection()
        try:
            sock = await connect(self._resolver, hop.host, hop.port)
        except HttpError as error:
            raise HttpError(f"proxyconnect tcp: {error}" if self._proxy else str(error)) from error
        tls, name = self._tls, self._server_name
        if self._proxy:  # as in Go, a proxy is verified as the server is
            tls, name = (self._tls or client_context()) if hop.scheme == "https" else None, hop.host
        try:
            await loop.create_connection(lambda: connection, sock=sock, ssl=tls, server_hostname=name if tls else None)
            if self._proxy and self._tls:
                try:
                    await self._tunnel(connection, self._tls)
                except BaseException:
                    connection.transport.abort()
                    raise
        except ssl.SSLCertVerificationError as error:
            raise CertificateError(error, self._server_name) from error
        except OSError as error:
            raise HttpError(connection_reason(error)) from error
        return connection

    async def _tunnel(self, connection: _Connection, tls: ssl.SSLContext) -> None:
        """Have the proxy connect us with the server, and start TLS with the server."""
        authority = self._server.authority
        headers = _header_lines([("Host", authority), *self._proxy_headers])
        response = await connection.send("CONNECT", f"CONNECT {authority} HTTP/1.1\r\n{headers}\r\n".encode())
        if response.status != 200:
            raise HttpError(f"the proxy answered {response.status} {response.reason}")
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(connection.transport, connection, tls, server_hostname=self._server_name)
        connection.transport = cast("asyncio.Transport", transport)


def _header_lines(headers: Iterable[tuple[str, str]]) -> str:
    for name, value in headers:
        if any(sign in f"{name}{value}" for sign in "\r\n\0"):
            raise HttpError(f'net/http: invalid header field value for "{name}"')  # not with the value: it is a secret
    return "".join(f"{name}: {value}\r\n" for name, value in headers)
