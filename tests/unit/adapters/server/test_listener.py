import asyncio
import errno
import fcntl
import gc
import socket
import ssl
import struct
import termios
from asyncio.sslproto import SSLProtocol
from contextlib import suppress

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from agent.adapters.server import listener as module
from agent.adapters.server.listener import Listener, listen
from agent.adapters.server.tls import Tls
from agent.ports import StartError
from tests.cluster.pairs import authority, client_pair
from tests.fakes import FakeClock, idle, running, until
from tests.settings import Serving

pytestmark = pytest.mark.anyio

REQUEST = b"GET / HTTP/1.1\r\nHost: n\r\n\r\n"


async def delivered(*writers):
    """Wait until the kernel has passed on what was written, and nobody in this process has anything to do about it."""
    await until(lambda: not any(map(unacknowledged, writers)))
    await idle()


def unacknowledged(writer):
    """How many bytes the other side of a connection has not received yet; none that it will, once it has gone."""
    if writer.is_closing() or not (connection := writer.get_extra_info("socket")):
        return 0
    return struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0]


class Counted(socket.socket):
    """A socket that listens, and knows how many have come."""

    accepted = 0

    def accept(self):
        accepted = super().accept()
        self.accepted += 1
        return accepted


class Door:
    """A listener on a port of its own, whose handler waits until it may answer."""

    def __init__(self, tls=None):
        self.tls, self.clock, self.may_answer = tls, FakeClock(), asyncio.Event()
        self.may_answer.set()
        self.ended, self.writers, self.handshakes = 0, [], 0
        self.socket = Counted(fileno=listen("127.0.0.1", 0, flag="--port").detach())
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.listener = Listener(self.socket, lambda: self._answer, clock=self.clock, tls=tls and self._begin_handshake)

    def _begin_handshake(self):
        self.handshakes += 1
        return self.tls

    async def _answer(self, request):
        await self.may_answer.wait()
        if request.path == "/body":
            return web.Response(text=str(len(await request.read())))
        if request.path != "/endless":
            return web.Response(text="here")
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(bytes(64 * 1024))
                await asyncio.sleep(0)  # or who is gone at this very moment would be written to for ever
        finally:
            self.ended += 1

    async def come(self, said=b"", source="127.0.0.1", tls=None):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0), ssl=tls)
        self.writers.append(writer)
        writer.write(said)
        await until(lambda: self.socket.accepted == len(self.writers))
        await delivered(writer)
        return reader, writer

    async def close(self):
        for writer in self.writers:
            writer.transport.abort()
        await idle()
        await self.listener.close()


@pytest.fixture
async def door():
    found = Door()
    async with running(found.listener):
        yield found
    await found.close()


async def head(reader):
    async with asyncio.timeout(60):
        return (await reader.read(500)).decode()


async def test_requests_are_answered_without_the_librarys_name(door):
    reader, _ = await door.come(REQUEST)
    answer = await head(reader)
    assert answer.startswith("HTTP/1.1 200 OK")
    assert "Server: fake-kubelet" in answer
    assert "aiohttp" not in answer


async def test_what_is_no_http_is_refused_in_gos_words(door, caplog):
    reader, _ = await door.come(b"NONSENSE\r\n\r\n")
    answer = await head(reader)
    assert answer.startswith("HTTP/1.0 400 Bad Request")
    assert answer.endswith("400 Bad Request")
    assert not caplog.records


async def test_a_port_without_connections_waits_for_no_time_to_pass(door):
    assert not door.clock.is_waited_for
    _, writer = await door.come()
    assert door.clock.is_waited_for
    writer.transport.abort()
    await until(lambda: not door.listener._connections)
    await door.clock.advance(10)
    assert not door.clock.is_waited_for


async def test_a_header_that_does_not_end_is_not_waited_for(door):
    reader, _ = await door.come(b"GET / HTTP/1.1\r\nHost: ")
    await door.clock.advance(15)
    assert not reader.at_eof()
    await door.clock.advance(11)
    assert await head(reader) == ""


UNREADABLE = b"\x30\x03\x82\x01\xff"  # a dNSName that is no text


def client_context(*files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if files:
        context.load_cert_chain(*files)
    return context


@pytest.fixture
async def tls_door(tmp_path):
    (tmp_path / "ca.crt").write_text(authority().pem)
    tls = Tls(Serving(client_ca_file=str(tmp_path / "ca.crt")))
    context = tls.context()
    context.load_cert_chain(*client_pair("server").write(tmp_path, "server"))
    found = Door(tls=context)
    async with running(found.listener):
        yield found
        await found.close()


async def test_a_certificate_that_cannot_be_read_costs_its_own_connection_and_no_other(tls_door, tmp_path, caplog):
    stranger = client_pair("stranger", alternative_names=UNREADABLE).write(tmp_path, "stranger")
    reader, _ = await tls_door.come(REQUEST, tls=client_context(*stranger))
    with suppress(ConnectionError):
        assert await head(reader) == ""
    reader, _ = await tls_door.come(REQUEST, tls=client_context())
    assert "here" in await head(reader)
    assert not caplog.records


class Haunted(ssl.SSLObject):
    def getpeercert(self, binary_form=False):
        raise LookupError("nobody thought of this")


async def test_even_what_nobody_thought_of_ends_one_connection_only(tls_door):
    loop = asyncio.get_running_loop()
    strict, good = loop.get_exception_handler(), tls_door.tls.sslobject_class
    loop.set_exception_handler(lambda *_: None)  # asyncio tells of it there, and anyio would fail the test
    tls_door.tls.sslobject_class = Haunted
    reader, _ = await tls_door.come(REQUEST, tls=client_context())
    with suppress(ConnectionError):
        assert await head(reader) == ""
    loop.set_exception_handler(strict)
    tls_door.tls.sslobject_class = good
    reader, _ = await tls_door.come(REQUEST, tls=client_context())
    assert "here" in await head(reader)


@pytest.fixture
def made():
    """Tells how many objects of a kind were made since the test began, and are there still: nothing is collected."""
    gc.collect()
    gc.disable()
    before = {id(found): found for found in gc.get_objects() if isinstance(found, (RequestHandler, SSLProtocol))}

    def count(kind):
        return sum(isinstance(found, kind) and id(found) not in before for found in gc.get_objects())

    yield count
    gc.enable()


async def test_a_connection_costs_no_http_before_its_first_byte(door, made):
    reader, writer = await door.come()
    assert made(RequestHandler) == 0
    writer.write(REQUEST)
    assert "here" in await head(reader)


async def test_a_connection_costs_no_tls_before_its_first_byte(tls_door, made):
    _, writer = await tls_door.come()
    assert (tls_door.handshakes, made(RequestHandler), made(SSLProtocol)) == (0, 0, 0)
    writer.write(b"\x16")
    await until(lambda: tls_door.handshakes == 1)


@pytest.mark.parametrize("said", [b"\0" * 64, b"SSH-2.0-x\r\n", b"\x80\x2e\x01\x00\x02"])
async def test_what_is_no_tls_is_sent_away_without_any(tls_door, said):
    reader, _ = await tls_door.come(said)
    with suppress(ConnectionError):
        assert await head(reader) == ""
    assert tls_door.handshakes == 0


async def test_http_where_tls_is_spoken_is_refused_in_gos_words(tls_door):
    reader, _ = await tls_door.come(REQUEST)
    answer = await head(reader)
    assert answer.startswith("HTTP/1.0 400 Bad Request")
    assert "Client sent an HTTP request to an HTTPS server." in answer
    assert tls_door.handshakes == 0


async def test_a_silent_client_is_sent_away(either):
    door, _ = either
    reader, _ = await door.come()
    await door.clock.advance(26)
    assert await head(reader) == ""


HELLO = b"\x16\x03\x01\x00\x05"


@pytest.mark.parametrize("said", [b"\x16", HELLO + b"\x01\x00\x00\x01\x00"], ids=["a byte", "a bad ClientHello"])
async def test_a_handshake_that_fails_leaves_nothing_behind(tls_door, said, made):
    for _ in range(5):
        _, writer = await tls_door.come(said)
        writer.transport.abort()
    await until(lambda: tls_door.handshakes == 5 and made(SSLProtocol) == 0)


async def test_a_client_that_nobody_trusts_leaves_nothing_behind_and_is_no_error(tls_door, tmp_path, caplog, made):
    context = client_context(*client_pair("stranger").write(tmp_path, "stranger"))

    def call():
        """Until the server ends it, before or after the end of the client's own handshake."""
        address = ("127.0.0.1", tls_door.port)
        with (
            suppress(OSError),
            socket.create_connection(address, 60) as plain,
            context.wrap_socket(plain) as connection,
        ):
            connection.recv(1)

    for _ in range(5):
        await asyncio.to_thread(call)
    await until(lambda: tls_door.handshakes == 5 and made(SSLProtocol) == 0)
    assert not caplog.records


async def test_a_body_that_does_not_come_is_not_waited_for(either):
    door, options = either
    reader, _ = await door.come(b"POST /body HTTP/1.1\r\nHost: n\r\nContent-Length: 9\r\n\r\nabc", **options)
    await door.clock.advance(80)
    assert not reader.at_eof()
    await door.clock.advance(20)
    assert await head(reader) == ""


LONG = REQUEST[:-2] + b"X: " + b"a" * 10_000 + b"\r\n\r\n"


async def test_who_pipelines_is_not_read_from_while_the_first_request_is_answered(either):
    door, options = either
    door.may_answer.clear()
    reader, writer = await door.come(REQUEST, **options)

    async def flood():
        for _ in range(64):  # megabytes; the kernel's buffers are full long before
            writer.write(LONG * 100)
            await writer.drain()

    flooding = asyncio.create_task(flood())
    await idle()
    assert not flooding.done()
    flooding.cancel()
    door.may_answer.set()
    assert "here" in await head(reader)


@pytest.mark.parametrize("before", [b"", REQUEST], ids=["the first request", "a later one"])
async def test_a_header_of_many_long_lines_is_refused(either, before):
    door, options = either
    reader, writer = await door.come(before, **options)
    if before:
        assert "here" in await head(reader)
    writer.write(REQUEST[:-2] + b"".join(b"X-%d: %s\r\n" % (number, b"a" * 10_000) for number in range(60)))
    assert (await head(reader)).startswith("HTTP/1.0 400 ")


async def test_between_requests_a_client_may_be_silent_for_as_long_as_a_kubelet_lets_it(door):
    reader, writer = await door.come(REQUEST)
    await head(reader)
    await door.clock.advance(60)
    writer.write(REQUEST)
    assert "here" in await head(reader)
    await door.clock.advance(100)
    assert await head(reader) == ""


async def test_who_is_being_answered_is_not_sent_away(door):
    door.may_answer.clear()
    reader, _ = await door.come(REQUEST)
    await door.clock.advance(3600)
    door.may_answer.set()
    assert "here" in await head(reader)


ENDLESS = REQUEST.replace(b"/ ", b"/endless ", 1)


@pytest.fixture(params=["plain", "TLS"])
def either(request):
    """A door, and what a client needs to come through it."""
    if request.param == "plain":
        return request.getfixturevalue("door"), {}
    return request.getfixturevalue("tls_door"), {"tls": client_context()}


async def test_who_does_not_take_the_answer_is_sent_away(either):
    door, options = either
    await door.come(ENDLESS, **options)
    await door.clock.advance(80)
    assert door.ended == 0
    await door.clock.advance(20)
    assert door.ended == 1


async def test_who_takes_it_slowly_is_not(either):
    door, options = either
    reader, _ = await door.come(ENDLESS, **options)
    for _ in range(2):
        await door.clock.advance(80)
        for _ in range(200):  # more than the kernel keeps for both
            await reader.readexactly(64 * 1024)
    assert door.ended == 0


async def test_who_does_not_take_the_answer_gives_way_to_who_comes(door, monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONNECTIONS", 2)
    for _ in range(2):
        await door.come(ENDLESS)
    reader, _ = await door.come(REQUEST)
    assert "here" in await head(reader)
    assert door.ended == 1


async def test_a_crowd_from_one_address_keeps_nobody_else_out(door, monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONNECTIONS", 4)
    crowd = [await door.come() for _ in range(4)]
    honest, writer = await door.come(source="127.0.0.2")
    more = await door.come()
    writer.write(REQUEST)
    assert "here" in await head(honest)
    gone = [await head(reader) == "" for reader, _ in crowd[:2]]
    assert gone == [True, True]
    assert not more[0].at_eof()


async def test_when_all_are_busy_a_new_one_is_refused(door, monkeypatch):
    monkeypatch.setattr(module, "_MAX_CONNECTIONS", 2)
    door.may_answer.clear()
    busy = [await door.come(REQUEST) for _ in range(2)]
    refused, _ = await door.come()
    assert await head(refused) == ""
    door.may_answer.set()
    assert all(["here" in await head(reader) for reader, _ in busy])


async def test_when_file_descriptors_are_few_connections_are_too(monkeypatch):
    monkeypatch.setattr(module.resource, "getrlimit", lambda _: (16, 16))
    door = Door()
    async with running(door.listener):
        crowd = [await door.come() for _ in range(3)]
        gone = [await head(crowd[0][0]), crowd[1][0].at_eof(), crowd[2][0].at_eof()]
    await door.close()
    assert gone == ["", False, False]


class Exhausted(socket.socket):
    """A socket that listens, in a process without a file descriptor left."""

    asked = 0

    def accept(self):
        self.asked += 1
        raise OSError(errno.EMFILE, "Too many open files")


async def test_without_file_descriptors_it_waits_and_complains_once_a_minute(caplog):
    listening, clock = Exhausted(), FakeClock()
    listening.setblocking(False)
    async with running(Listener(listening, None, clock=clock)):
        await clock.advance(59)
        assert 100 <= listening.asked <= 120
        assert len(caplog.records) == 1
        await clock.advance(10)
        assert len(caplog.records) == 2
    listening.close()


async def test_new_certificates_end_a_connection_that_is_in_use_after_its_answer(either):
    door, options = either
    door.may_answer.clear()
    reader, writer = await door.come(REQUEST, **options)
    door.listener.drain()
    writer.write(REQUEST)  # of somebody who may not be trusted any more
    door.may_answer.set()
    async with asyncio.timeout(60):
        answer = (await reader.read()).decode()
    assert answer.count("HTTP/1.1") == 1
    assert "Connection: close" in answer


async def test_new_certificates_end_the_connections_that_nobody_uses(door):
    reader, _ = await door.come(REQUEST)
    await head(reader)
    door.listener.drain()
    assert await head(reader) == ""


async def test_new_certificates_let_nobody_wait_who_is_just_coming(tls_door):
    coming = asyncio.create_task(tls_door.come(REQUEST, tls=client_context()))
    async with asyncio.timeout(60):
        while not coming.done():  # some turn of these is the one between being accepted and being welcomed
            tls_door.listener.drain()
            await asyncio.sleep(0)
    with pytest.raises(ConnectionError):
        await coming


async def test_a_port_that_is_taken_is_told_with_the_flag_that_chooses_another(door):
    with pytest.raises(StartError, match=r"cannot listen on 127\.0\.0\.1:") as caught:
        listen("127.0.0.1", door.port, flag="--port")
    assert caught.value.hint.startswith(
        "is there another kubelet on this machine? Stop it, or choose another port with"
    )
    assert caught.value.hint.endswith("--port")


async def test_an_address_of_no_family_in_particular_serves_both():
    socket = listen("0.0.0.0", 0, flag="--port")
    port = socket.getsockname()[1]
    for address in ("127.0.0.1", "::1"):
        _, writer = await asyncio.open_connection(address, port)
        writer.close()
    socket.close()
