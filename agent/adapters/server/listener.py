"""One port and the connections on it: never too many of them, and none that is idle for too long."""

import asyncio
import errno
import gc
import logging
import math
import os
import resource
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from ipaddress import ip_address
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from agent.adapters.server.http_protocol import (
    EARLY_RESPONSE,
    READ_BYTES,
    Handler,
    HttpServer,
    release_frames,
    with_server_header,
)
from agent.adapters.server.responses import text_response
from agent.klog import V4
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

_BACKLOG = 512  # connections that wait to be accepted; beyond it, the kernel lets a client wait for a second at least
_MAX_CONNECTIONS = 128  # each costs up to 100 KiB during its handshake
_DESCRIPTORS_DIVISOR = 8  # a port may use an eighth of the file descriptors: the heartbeat needs some
_HANDSHAKE_SECONDS = 10.0
_FIRST_REQUEST_SECONDS = 20.0
_IDLE_SECONDS = 90.0  # between two requests, as kubelet; and with a response that the client does not read
_CHECK_SECONDS = 5.0
_MAX_UNSENT_BYTES = 16 * 1024  # of a connection; over TLS asyncio would buffer 512 KiB
_ACCEPT_RETRY_SECONDS = 0.5  # when there are no file descriptors left
_LOG_PERIOD_SECONDS = 60.0
_CLOSE_SECONDS = 1.0
_TRIM_EVERY = 64  # connections that ended, then free memory is returned to the system

_TLS_RECORD = b"\x16"  # the first byte of a ClientHello
_HTTP_METHODS = (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")  # net/http: tlsRecordHeaderLooksLikeHTTP
_HTTP_TO_HTTPS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

# asyncio gives each TLS connection a buffer of 256 KiB, an idle one too.
SSLProtocol.max_size = 2 * READ_BYTES


def listen(address: str, port: int, *, flag: str) -> socket.socket:
    """Return a socket that listens. Raises StartError, with a hint that names the flag of the port."""
    try:
        if ip_address(address).is_unspecified and socket.has_dualstack_ipv6():  # both families, as in Go
            sock = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
        else:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            sock = socket.create_server((address, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        hint = f"check --address, or choose another port with {flag}"
        if error.errno == errno.EADDRINUSE:
            hint = f"is there another kubelet on this machine? Stop it, or choose another port with {flag}"
        raise StartError(f"cannot listen on {address}:{port}: {os.strerror(error.errno or 0)}", hint=hint) from error
    sock.setblocking(False)
    log.info("Starting to listen", {"address": address, "port": port})
    return sock


class _Connection:
    """One connection, from the moment it was accepted."""

    __slots__ = ("address", "close", "has_sent_request", "is_draining", "reading_since", "write_paused_since")

    def __init__(self, address: str, now: float) -> None:
        self.address = address
        self.reading_since = now  # infinity while a request is being answered
        self.write_paused_since = math.inf  # finite while the client does not read its response
        self.has_sent_request = False
        self.is_draining = False  # it is closed once its request has been answered
        self.close: Callable[[], object] = lambda: None

    @property
    def idle_since(self) -> float:
        """Since when the client has neither sent nor read anything; infinity while we work for it."""
        return min(self.reading_since, self.write_paused_since)

    def is_overdue(self, now: float) -> bool:
        """Whether the client has been idle for too long."""
        return now - self.idle_since > (_IDLE_SECONDS if self.has_sent_request else _FIRST_REQUEST_SECONDS)


class Listener:
    """Accepts connections and has their requests answered.

    asyncio's own server accepts without end and has no deadline before the first request: a few hundred clients that
    never finish a header would hold memory and descriptors for good. Here, when there are as many connections as
    allowed, one of the address that has most idle connections is closed, the one that has been idle for longest.
    """

    def __init__(
        self,
        listening: socket.socket,
        handler: Handler,
        *,
        clock: Clock,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._socket = listening
        self._handler = handler
        self._clock = clock
        self._tls = tls
        self._connections: dict[_Connection, None] = {}
        self._by_protocol: dict[RequestHandler, _Connection] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self._ended = 0
        self._logged_at = -math.inf
        self._max_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _DESCRIPTORS_DIVISOR

    @cached_property
    def _server(self) -> HttpServer:
        return HttpServer(
            self._answer,
            keepalive_seconds=_IDLE_SECONDS,
            on_flow_control=self._on_flow_control,
            on_lost=self._on_lost,
        )

    async def run(self) -> None:
        """Accept forever."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._close_overdue())
            while True:
                sock, address = await self._accept()
                if not self._ensure_capacity():
                    sock.close()
                    continue
                connection = _Connection(address, self._clock.monotonic())
                self._connections[connection] = None
                # Wait without a task, TLS or HTTP: a client that sends nothing costs no more than its socket.
                loop.add_reader(sock, self._on_first_byte, connection, sock)
                connection.close = partial(self._close_socket, connection, sock)
                await asyncio.sleep(0)  # however many connections come, other tasks get a turn

    async def close(self) -> None:
        """Stop listening; requests that are being answered get a moment to end."""
        self._socket.close()
        self.drain()
        await self._server.shutdown(_CLOSE_SECONDS)

    def drain(self) -> None:
        """Close all connections: the idle ones now, the others once their request is answered."""
        for connection in list(self._connections):
            connection.is_draining = True
            if connection.reading_since < math.inf:
                connection.close()

    async def _accept(self) -> tuple[socket.socket, str]:
        while True:
            try:
                sock, peer = await asyncio.get_running_loop().sock_accept(self._socket)
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:  # no descriptors left
                if self._clock.monotonic() - self._logged_at >= _LOG_PERIOD_SECONDS:
                    self._logged_at = self._clock.monotonic()
                    log.error("Unable to accept a connection", {"err": error})
                await self._clock.sleep(_ACCEPT_RETRY_SECONDS)
            else:
                return sock, peer[0]

    def _ensure_capacity(self) -> bool:
        """Return whether another connection is allowed; an idle one is closed for it if need be."""
        if len(self._connections) < min(_MAX_CONNECTIONS, self._max_descriptors):
            return True
        idle = [(connection, since) for connection in self._connections if (since := connection.idle_since) < math.inf]
        if not idle:
            return False
        by_address = Counter(connection.address for connection, _ in idle)
        oldest, _ = max(idle, key=lambda entry: (by_address[entry[0].address], -entry[1]))
        log.log(V4, "Too many connections, ending one that is idle", {"address": oldest.address})
        self._connections.pop(oldest)
        oldest.close()
        return True

    def _on_first_byte(self, connection: _Connection, sock: socket.socket) -> None:
        try:
            start = sock.recv(5, socket.MSG_PEEK)
        except BlockingIOError:  # there was nothing after all
            return
        except OSError:
            start = b""
        if self._tls and start.startswith(_HTTP_METHODS):
            with suppress(OSError):
                sock.recv(READ_BYTES)  # unread, it would have the kernel reset the connection before the answer
                sock.send(_HTTP_TO_HTTPS)
        if not start or (self._tls and not start.startswith(_TLS_RECORD)):
            self._close_socket(connection, sock)
            return
        asyncio.get_running_loop().remove_reader(sock)
        task = asyncio.create_task(self._handshake(connection, sock))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def _close_socket(self, connection: _Connection, sock: socket.socket) -> None:
        self._connections.pop(connection, None)
        asyncio.get_running_loop().remove_reader(sock)
        sock.close()

    async def _handshake(self, connection: _Connection, sock: socket.socket) -> None:
        """Hand the socket to aiohttp, over TLS after the handshake."""
        if sock.fileno() < 0:  # closed before this task ran
            return
        context, protocol = self._tls() if self._tls else None, self._server()
        self._by_protocol[protocol] = connection
        if task := asyncio.current_task():  # not before it runs: cancelled unbegun, it would leave the client waiting
            connection.close = task.cancel
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                sock,
                ssl=context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if context else None,
                ssl_shutdown_timeout=_CLOSE_SECONDS if context else None,
            )
            connection.close = transport.abort
            _limit_buffers(transport)
        except Exception as error:
            # Garbage, no common version or cipher, no certificate yet, one that does not verify, silence: no
            # handshake that fails affects another connection.
            log.log(V4, "TLS handshake error", {"address": connection.address, "err": error})
            release_frames(error)
            self._on_lost(protocol)
        except asyncio.CancelledError as error:  # by connection.close; asyncio has closed the socket
            release_frames(error)
            self._on_lost(protocol)
            raise

    def _on_flow_control(self, protocol: RequestHandler) -> None:
        if connection := self._by_protocol.get(protocol):
            connection.write_paused_since = self._clock.monotonic() if protocol.writing_paused else math.inf

    def _on_lost(self, protocol: RequestHandler) -> None:
        self._ended += 1
        if self._ended % _TRIM_EVERY == 0:
            asyncio.get_running_loop().call_soon(_trim_memory)
        if connection := self._by_protocol.pop(protocol, None):
            self._connections.pop(connection, None)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._by_protocol.get(request.protocol) or _Connection("", math.inf)
        connection.has_sent_request = True
        # A client that has not sent the whole body yet is not waiting for us.
        connection.reading_since = math.inf if request.content.is_eof() else self._clock.monotonic()
        try:
            if early := request.get(EARLY_RESPONSE):
                response: web.StreamResponse = text_response(early.text, status=early.status)
            else:
                response = await self._handler(request)
            if connection.is_draining and not response.prepared:
                response.force_close()
            return with_server_header(response)
        finally:
            connection.reading_since = self._clock.monotonic()
            if connection.is_draining:
                request.protocol.close()

    async def _close_overdue(self) -> None:
        """Close the connections of clients that do not finish a request, or do not read the response."""
        while True:
            await self._clock.sleep(_CHECK_SECONDS)
            now = self._clock.monotonic()
            for connection in [connection for connection in self._connections if connection.is_overdue(now)]:
                connection.close()


def _limit_buffers(transport: Any) -> None:
    """Have asyncio buffer little of what is not sent or not read yet: by default 512 and 256 KiB."""
    transport.set_write_buffer_limits(_MAX_UNSENT_BYTES)
    if hasattr(transport, "set_read_buffer_limits"):  # over TLS
        transport.set_read_buffer_limits(READ_BYTES)
    else:
        transport.max_size = READ_BYTES


def _trim_memory() -> None:
    """Return free memory from the C library to the system: it may be as much as the whole daemon needs."""
    import ctypes  # noqa: PLC0415  few ever need it

    gc.collect(1)  # the reference cycles that asyncio makes around TLS
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # not glibc
        log.log(V4, "The C library keeps the memory of connections that ended")
