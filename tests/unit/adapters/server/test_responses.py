"""Bodies that are larger than anybody wants to keep in memory."""

import asyncio
import tracemalloc

import pytest
from aiohttp import web

from agent.adapters.clock import SystemClock
from agent.adapters.server.endpoints import NodeEndpoints
from agent.adapters.server.listener import Listener, listen
from agent.adapters.server.responses import stream_response, text_response
from agent.controllers.pod_store import PodStore
from tests.fakes import idle, running, settle, until

pytestmark = pytest.mark.anyio

MIB = 2**20
ASK = b"GET / HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n"


def pod(number, size):
    metadata = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}", "resourceVersion": "1"}
    return {"metadata": metadata | {"annotations": {"a": "x" * size}}, "spec": {"containers": [{"name": "c"}]}}


class Served:
    """A handler behind the door that the daemon has, too."""

    def __init__(self, handler):
        self._listening = listen("127.0.0.1", 0, flag="")
        self.port = self._listening.getsockname()[1]
        self._listener = Listener(self._listening, lambda: handler, clock=SystemClock())

    async def run(self):
        try:
            await self._listener.run()
        finally:
            await self._listener.close()


async def read(port, *, at_most=2**40):
    """The body's size, and its end; nothing of the rest is kept."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    writer.write(ASK)
    size, end = 0, b""
    while size < at_most and (part := await reader.read(2**16)):
        size, end = size + len(part), (end + part)[-64:]
    writer.transport.abort()
    return size, end


async def test_pods_are_sent_from_what_is_stored_with_little_memory_and_a_turn_for_everybody_else():
    store = PodStore()
    for number in range(40):
        store.upsert(pod(number, MIB))
    sources = type("Sources", (), {"pods": store.encoded})
    node, turns = NodeEndpoints(sources, SystemClock()), 0

    async def beat():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    server = Served(lambda request: node.pods(request, {}))
    async with running(server):
        await read(server.port, at_most=1000)  # whatever is made but once
        beating = asyncio.create_task(beat())
        tracemalloc.start()
        try:
            answers = await asyncio.gather(*(read(server.port) for _ in range(4)))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            beating.cancel()
    assert all(size > 40 * MIB and end.endswith(b"]}\n\r\n0\r\n\r\n") for size, end in answers)
    assert peak < 8 * MIB
    assert turns > 40 * MIB / (64 * 1024)


async def test_who_does_not_read_is_waited_for():
    sent = 0

    def parts():
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"x" * MIB

    server = Served(lambda request: stream_response(request, parts(), content_type="text/plain"))
    async with running(server):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=2**16)
        writer.write(ASK)
        await until(lambda: sent)
        await idle()  # the buffers of both sides are full
        assert sent < 50
        writer.transport.abort()
        await settle()


async def test_a_body_that_breaks_off_ends_the_connection_and_nothing_else():
    def parts():
        yield b"x" * MIB
        raise RuntimeError

    async def handler(request):
        try:
            return await stream_response(request, parts(), content_type="text/plain")
        except RuntimeError:
            return text_response("the door says this for every error", status=500)

    server = Served(handler)
    async with running(server):
        try:
            _, end = await read(server.port)
        except ConnectionResetError:
            end = b""
        assert not end.endswith(b"0\r\n\r\n")
        assert b"the door says" not in end


@pytest.mark.parametrize("parts", [[], [b"abc"], [b"a", b"b", b"c"]])
async def test_a_short_body_has_a_length(parts):
    answer = await stream_response(None, iter(parts), content_type="text/plain")
    assert isinstance(answer, web.Response)
    assert answer.body == b"".join(parts)


def test_text_that_is_no_unicode_is_replaced():
    assert text_response("a\udcff").body == b"a?"
