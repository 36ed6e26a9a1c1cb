"""One port and the connections on it: never too many of them, and none that is idle for too long."""

import asyncio
import gc
import logging
import math
import resource
import socket
import ssl
import traceback
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from typing import Any

from aiohttp import EMPTY_PAYLOAD, HttpVersion11, StreamReader, hdrs, web, web_protocol
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from agent.adapters.server.framing import (
    TALKS_HTTP,
    TALKS_TLS,
    WRONG_PROTOCOL,
    Fault,
    framing_fault,
    is_request_line,
    parsing_fault,
)
from agent.adapters.server.replies import SERVER, plain
from agent.klog import V4
from agent.ports import Clock

log = logging.getLogger(__name__)

_MOST_CONNECTIONS = 128  # each costs up to 100 KiB during its handshake
_HANDSHAKE_SECONDS = 10.0
_FIRST_REQUEST_SECONDS = 20.0  # as long may a client take to say what it wants
_IDLE_SECONDS = 90.0  # between two requests, as kubelet; and with an answer that nobody takes
_LOOK_SECONDS = 5.0
_MOST_HEADERS, _LONGEST_HEAD = 64, 16 * 1024
_MOST_PIPELINED = 2  # requests that are read before they are asked for
_MOST_WAITING_BYTES = 16 * 1024  # for a client to take them; over TLS asyncio would keep 512 KiB
_LINGER_SECONDS = 2.0  # for the rest of a body that nobody reads
_BREATH_SECONDS = 0.5  # when there are no file descriptors left
_COMPLAIN_SECONDS = 60.0
_PARTING_SECONDS = 1.0
_CROWD = 64  # so many connections that ended leave something behind
_DESCRIPTORS_SHARE = 8  # one of so many file descriptors is for the connections of one port: the heart needs some
_READ_BYTES = 16 * 1024  # at a time, and about as much of a body is kept until it is asked for

# asyncio gives each TLS connection a buffer of 256 KiB, an idle one too.
SSLProtocol.max_size = 2 * _READ_BYTES
# aiohttp parses 32 requests ahead, whatever their size.
web_protocol.MAX_MSG_QUEUE_SIZE = _MOST_PIPELINED

_REFUSED = b"\0"  # by the parser, wherever it is in a header

_FAULT = web.RequestKey("fault", Fault)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Guest:
    """One connection, from the moment it was accepted."""

    __slots__ = ("address", "deaf_since", "has_spoken", "is_dismissed", "send_away", "silent_since")

    def __init__(self, address: str, now: float) -> None:
        self.address = address
        self.silent_since = now  # infinity while it is being answered
        self.deaf_since = math.inf  # since when it has not taken what we have for it
        self.has_spoken = False
        self.is_dismissed = False  # to be ended once it has been answered
        self.send_away: Callable[[], object] = lambda: None

    @property
    def idle_since(self) -> float:
        """Since when it has done nothing; infinity if it is busy."""
        return min(self.silent_since, self.deaf_since)

    def is_overdue(self, now: float) -> bool:
        """Whether it has done nothing for too long."""
        return now - self.idle_since > (_IDLE_SECONDS if self.has_spoken else _FIRST_REQUEST_SECONDS)


class _Connection(RequestHandler):
    """aiohttp's side of a connection, with a kubelet's answer to what is no HTTP, and no traceback for it."""

    __slots__ = ("_begin", "_body", "_head_bytes", "on_pace")

    def __init__(self, *arguments: Any, on_pace: Callable[[RequestHandler], None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.on_pace = on_pace
        self._begin: bytes | None = b""  # of the first request, up to the end of its first line
        self._head_bytes = 0  # of a request whose header has not ended yet, at most
        self._body = EMPTY_PAYLOAD  # of the request before that

    def data_received(self, data: bytes) -> None:
        """Have the data parsed from the end of the first line on; refuse a line that is none and an endless header."""
        if self._begin is not None:
            data = self._begin + data
            if b"\n" not in data and len(data) <= _LONGEST_HEAD:
                self._begin = data
                return
            self._begin = None
            if not is_request_line(data):
                data = _REFUSED
        count = self._request_count
        super().data_received(data)
        if self._request_count > count:
            self._head_bytes, self._body = 0, self._messages[-1][1]
        elif self._body.is_eof():
            self._head_bytes += len(data)
            if self._head_bytes > _LONGEST_HEAD:
                super().data_received(_REFUSED)

    def pause_writing(self) -> None:
        """The client does not keep up with us."""
        super().pause_writing()
        self.on_pace(self)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self.on_pace(self)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Say that it failed, and end the connection."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("Unable to answer a request", {"path": request.path}, exc_info=exc)
            fault = Fault(status, f"{status} {HTTPStatus(status).phrase}")
        else:
            log.log(V4, "Malformed request", {"address": request.remote, "err": message})
            fault = parsing_fault(message or "")
        _untie(exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer has been sent already")
        answer = plain(fault.text, status=fault.status)
        answer.force_close()
        return _signed(answer)


class _Server(web.Server):
    """Makes such connections, and tells when one has ended."""

    def __init__(self, handler: Handler, on_lost: Callable[[RequestHandler], None], **options: Any) -> None:
        super().__init__(handler, request_factory=_request)
        self._on_lost, self._options = on_lost, options

    def __call__(self) -> _Connection:
        """The protocol of a new connection."""
        return _Connection(self, loop=asyncio.get_running_loop(), **self._options)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Pass it on."""
        super().connection_lost(handler, exc)
        self._on_lost(handler)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Make aiohttp's request; with its fault, if it has one."""
    fault = framing_fault(message)
    if fault:  # the answer has the version of the request, and not every one can be answered in
        message = message._replace(version=HttpVersion11, should_close=True)
    request = web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())
    if fault:
        request[_FAULT] = fault
    return request


class Listener:
    """Accepts connections and has their requests answered.

    asyncio's own server accepts without end and knows no deadline before the first request: a few hundred clients that
    never finish a header would hold memory and descriptors for good. Here, when all seats are taken, somebody from the
    address that has most of them gives way, the one that has been idle for longest.
    """

    def __init__(
        self,
        listening: socket.socket,
        handler: Handler,
        *,
        clock: Clock,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._socket, self._handler, self._clock, self._tls = listening, handler, clock, tls
        self._guests: dict[_Guest, None] = {}
        self._by_connection: dict[RequestHandler, _Guest] = {}
        self._welcoming: set[asyncio.Task[None]] = set()
        self._ended = 0
        self._complained_at = -math.inf
        self._share = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _DESCRIPTORS_SHARE

    @cached_property
    def _server(self) -> _Server:
        return _Server(
            self._answer,
            self._on_lost,
            on_pace=self._on_pace,
            access_log=None,
            keepalive_timeout=_IDLE_SECONDS,
            lingering_time=_LINGER_SECONDS,
            max_headers=_MOST_HEADERS,
            max_line_size=_LONGEST_HEAD,
            max_field_size=_LONGEST_HEAD,
            read_bufsize=_READ_BYTES,
            auto_decompress=False,
        )

    async def run(self) -> None:
        """Accept forever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch())
            while True:
                connection, address = await self._accepted()
                if not self._has_room():
                    connection.close()
                    continue
                guest = _Guest(address, self._clock.monotonic())
                self._guests[guest] = None
                self._wait_for_first_byte(guest, connection)
                await asyncio.sleep(0)  # with a crowd at the door, everybody else gets a turn

    async def close(self) -> None:
        """Stop listening; what is under way gets a moment to end."""
        self._socket.close()
        self.dismiss()
        await self._server.shutdown(_PARTING_SECONDS)

    def dismiss(self) -> None:
        """End all connections: those that nobody uses now, the others once they are answered."""
        for guest in list(self._guests):
            guest.is_dismissed = True
            if guest.silent_since < math.inf:
                guest.send_away()

    async def _accepted(self) -> tuple[socket.socket, str]:
        while True:
            try:
                connection, peer = await asyncio.get_running_loop().sock_accept(self._socket)
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:  # no descriptors left
                if self._clock.monotonic() - self._complained_at >= _COMPLAIN_SECONDS:
                    self._complained_at = self._clock.monotonic()
                    log.error("Unable to accept a connection", {"err": error})
                await self._clock.sleep(_BREATH_SECONDS)
            else:
                return connection, peer[0]

    def _has_room(self) -> bool:
        """Whether there is a seat, even if somebody idle has to leave for it."""
        if len(self._guests) < min(_MOST_CONNECTIONS, self._share):
            return True
        idle = [(guest, since) for guest in self._guests if (since := guest.idle_since) < math.inf]
        if not idle:
            return False
        seats = Counter(guest.address for guest, _ in idle)
        oldest, _ = max(idle, key=lambda entry: (seats[entry[0].address], -entry[1]))
        log.log(V4, "Too many connections, ending one that is idle", {"address": oldest.address})
        self._guests.pop(oldest)
        oldest.send_away()
        return True

    def _wait_for_first_byte(self, guest: _Guest, connection: socket.socket) -> None:
        """Wait without a task, TLS or HTTP: a connection that says nothing costs no more than its socket."""
        asyncio.get_running_loop().add_reader(connection, self._on_first_byte, guest, connection)
        guest.send_away = lambda: self._turn_away(guest, connection)

    def _on_first_byte(self, guest: _Guest, connection: socket.socket) -> None:
        try:
            begin = connection.recv(5, socket.MSG_PEEK)
        except BlockingIOError:  # there was nothing after all
            return
        except OSError:
            begin = b""
        if self._tls and begin.startswith(TALKS_HTTP):
            with suppress(OSError):
                connection.recv(_READ_BYTES)  # unread, it would have the kernel reset the connection before the answer
                connection.send(WRONG_PROTOCOL)
        if not begin or (self._tls and not begin.startswith(TALKS_TLS)):
            self._turn_away(guest, connection)
            return
        asyncio.get_running_loop().remove_reader(connection)
        task = asyncio.create_task(self._welcome(guest, connection))
        self._welcoming.add(task)
        task.add_done_callback(self._welcoming.discard)

    def _turn_away(self, guest: _Guest, connection: socket.socket) -> None:
        self._guests.pop(guest, None)
        asyncio.get_running_loop().remove_reader(connection)
        connection.close()

    async def _welcome(self, guest: _Guest, connection: socket.socket) -> None:
        """The handshake, up to the moment when aiohttp has the connection."""
        if connection.fileno() < 0:  # sent away before this task ran
            return
        context, handler = self._tls() if self._tls else None, self._server()
        self._by_connection[handler] = guest
        if task := asyncio.current_task():  # not before it runs: cancelled unbegun, it would leave the client waiting
            guest.send_away = task.cancel
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: handler,
                connection,
                ssl=context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if context else None,
                ssl_shutdown_timeout=_PARTING_SECONDS if context else None,
            )
            guest.send_away = transport.abort
            transport.set_write_buffer_limits(_MOST_WAITING_BYTES)
            _limit_reading(transport)
        except Exception as error:
            # Garbage, no common version or cipher, no certificate yet, one that does not verify, silence: whatever it
            # is, it costs nobody else.
            log.log(V4, "TLS handshake error", {"address": guest.address, "err": error})
            _untie(error)
            self._on_lost(handler)
        except asyncio.CancelledError as error:  # sent away; asyncio has closed it
            _untie(error)
            self._on_lost(handler)
            raise

    def _on_pace(self, handler: RequestHandler) -> None:
        if guest := self._by_connection.get(handler):
            guest.deaf_since = self._clock.monotonic() if handler.writing_paused else math.inf

    def _on_lost(self, handler: RequestHandler) -> None:
        self._ended += 1
        if self._ended % _CROWD == 0:
            asyncio.get_running_loop().call_soon(_give_memory_back)
        if guest := self._by_connection.pop(handler, None):
            self._guests.pop(guest, None)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        guest = self._by_connection.get(request.protocol) or _Guest("", math.inf)
        guest.has_spoken = True
        # Who has not sent the whole body yet is not waiting for us.
        guest.silent_since = math.inf if request.content.is_eof() else self._clock.monotonic()
        try:
            fault = request.get(_FAULT)
            answer = plain(fault.text, status=fault.status) if fault else await self._handler(request)
            if guest.is_dismissed and not answer.prepared:
                answer.force_close()
            return _signed(answer)
        finally:
            guest.silent_since = self._clock.monotonic()
            if guest.is_dismissed:
                request.protocol.close()

    async def _watch(self) -> None:
        """Send those away who never say what they want, or not all of it, or do not take what they are told."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            now = self._clock.monotonic()
            for guest in [guest for guest in self._guests if guest.is_overdue(now)]:
                guest.send_away()


def _signed(answer: web.StreamResponse) -> web.StreamResponse:
    """Without a name of ours, aiohttp would tell everybody its version, and Python's."""
    if not answer.prepared:
        answer.headers[hdrs.SERVER] = SERVER
    return answer


def _limit_reading(transport: Any) -> None:
    """Have asyncio keep little of what nobody has asked for yet: by default it is 256 KiB."""
    if hasattr(transport, "set_read_buffer_limits"):  # over TLS
        transport.set_read_buffer_limits(_READ_BYTES)
    else:
        transport.max_size = _READ_BYTES


def _untie(error: BaseException | None) -> None:
    """Cut the cycle of an exception and the frames that hold it: with it goes the memory of a whole connection."""
    if error:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None


def _give_memory_back() -> None:
    """After a crowd, return what the C library keeps of it: it may be as much again as the whole daemon needs."""
    import ctypes  # noqa: PLC0415  few ever need it

    gc.collect(1)  # the knots that asyncio ties around TLS
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # not glibc
        log.log(V4, "The C library keeps the memory of connections that ended")
