"""One port and the connections on it: never too many of them, and none that is idle for too long."""

import asyncio
import errno
import logging
import math
import os
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING

from agent.adapters.server.connection import (
    IDLE_SECONDS,
    READ_BYTES,
    Connection,
    limit_buffers,
    release_frames,
    trim_memory,
)
from agent.adapters.tls import without_system_cas
from agent.klog import V4
from agent.ports import Clock, StartError

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.web_protocol import RequestHandler

    from agent.adapters.server.http_protocol import Handler, HttpServer

log = logging.getLogger(__name__)

_BACKLOG = 512  # connections that wait to be accepted; beyond it, the kernel lets a client wait for a second at least
_MAX_CONNECTIONS = 128  # each costs up to 100 KiB during its handshake
_DESCRIPTORS_DIVISOR = 8  # a port may use an eighth of the file descriptors: the heartbeat needs some
_HANDSHAKE_SECONDS = 10.0
_CHECK_SECONDS = 5.0
_ACCEPT_RETRY_SECONDS = 0.5  # when there are no file descriptors left
_LOG_PERIOD_SECONDS = 60.0
_CLOSE_SECONDS = 1.0
_TRIM_EVERY = 64  # connections that ended, then free memory is returned to the system

_TLS_RECORD = b"\x16"  # the first byte of a ClientHello
_HTTP_METHODS = (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")  # net/http: tlsRecordHeaderLooksLikeHTTP
_HTTP_TO_HTTPS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


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


class Listener:
    """Accepts connections and has their requests answered.

    asyncio's own server accepts without end and has no deadline before the first request: a few hundred clients that
    never finish a header would hold memory and descriptors for good. Here, when there are as many connections as
    allowed, one of the address that has most idle connections is closed, the one that has been idle for longest.
    """

    def __init__(
        self,
        listening: socket.socket,
        load_handler: "Callable[[], Handler]",
        *,
        clock: Clock,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._socket = listening
        self._load_handler = load_handler
        self._clock = clock
        self._tls = tls
        self._connections: dict[Connection, None] = {}
        self._has_connections = asyncio.Event()
        self._by_protocol: dict[RequestHandler, Connection] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self._ended = 0
        self._logged_at = -math.inf
        self._max_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _DESCRIPTORS_DIVISOR

    @cached_property
    def _server(self) -> "HttpServer":
        """Load aiohttp and the handler: 9 MiB that a node which is never asked anything does without."""
        with without_system_cas():
            from agent.adapters.server.http_protocol import HttpServer, guarded  # noqa: PLC0415  as said above

            handler = guarded(self._load_handler())
        return HttpServer(
            partial(self._answer, handler),
            keepalive_seconds=IDLE_SECONDS,
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
                connection = Connection(address, self._clock.monotonic())
                self._connections[connection] = None
                self._has_connections.set()
                # Wait without a task, TLS or HTTP: a client that sends nothing costs no more than its socket.
                loop.add_reader(sock, self._on_first_byte, connection, sock)
                connection.close = partial(self._close_socket, connection, sock)
                await asyncio.sleep(0)  # however many connections come, other tasks get a turn

    async def close(self) -> None:
        """Stop listening; requests that are being answered get a moment to end."""
        self.stop()
        if "_server" in vars(self):  # somebody has asked something
            await self._server.shutdown(_CLOSE_SECONDS)

    def stop(self) -> None:
        """Stop listening; requests that are being answered are answered."""
        self._socket.close()
        self.drain()

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

    def _on_first_byte(self, connection: Connection, sock: socket.socket) -> None:
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

    def _close_socket(self, connection: Connection, sock: socket.socket) -> None:
        self._connections.pop(connection, None)
        asyncio.get_running_loop().remove_reader(sock)
        sock.close()

    async def _handshake(self, connection: Connection, sock: socket.socket) -> None:
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
            limit_buffers(transport)
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

    def _on_flow_control(self, protocol: "RequestHandler") -> None:
        if connection := self._by_protocol.get(protocol):
            connection.write_paused_since = self._clock.monotonic() if protocol.writing_paused else math.inf

    def _on_lost(self, protocol: "RequestHandler") -> None:
        self._ended += 1
        if self._ended % _TRIM_EVERY == 0:
            asyncio.get_running_loop().call_soon(trim_memory)
        if connection := self._by_protocol.pop(protocol, None):
            self._connections.pop(connection, None)

    async def _answer(self, handler: "Handler", request: "web.BaseRequest") -> "web.StreamResponse":
        connection = self._by_protocol.get(request.protocol) or Connection("", math.inf)
        connection.has_sent_request = True
        # A client that has not sent the whole body yet is not waiting for us.
        connection.reading_since = math.inf if request.content.is_eof() else self._clock.monotonic()
        try:
            response = await handler(request)
            if connection.is_draining and not response.prepared:
                response.force_close()
            return response
        finally:
            connection.reading_since = self._clock.monotonic()
            if connection.is_draining:
                request.protocol.close()

    async def _close_overdue(self) -> None:
        """Close the connections of clients that do not finish a request, or do not read the response."""
        while True:
            if not self._connections:
                self._has_connections.clear()
                await self._has_connections.wait()
            await self._clock.sleep(_CHECK_SECONDS)
            now = self._clock.monotonic()
            for connection in [connection for connection in self._connections if connection.is_overdue(now)]:
                connection.close()
