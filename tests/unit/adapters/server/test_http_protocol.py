import asyncio

import pytest
from aiohttp import web

from agent.adapters.server.listener import Listener, listen
from tests.cluster.framing import CASES, STRICTER, status
from tests.fakes import FakeClock, running

pytestmark = pytest.mark.anyio


@pytest.fixture
async def port():
    async def answer(_):
        return web.Response(status=299)

    socket = listen("127.0.0.1", 0, flag="--port")
    listener = Listener(socket, lambda: answer, clock=FakeClock())
    async with running(listener):
        yield socket.getsockname()[1]
    await listener.close()


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
async def test_a_handler_sees_no_request_that_net_http_would_refuse(name, case, port):
    expected = 400 if name in STRICTER else case.refusal or 299
    assert await asyncio.to_thread(status, port, case.raw) == expected


async def test_one_that_is_refused_ends_the_connection(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: n\r\n\r\n"
    writer.write(CASES["encoding: gzip, chunked"].raw + smuggled)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    assert answer.count(b"HTTP/1.") == 1
    assert b"Connection: close" in answer
