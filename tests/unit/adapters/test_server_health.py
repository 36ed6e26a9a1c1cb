import asyncio
import socket

import pytest

from agent.adapters.server import HealthServer
from agent.core.config import Serving
from agent.ports import StartError

pytestmark = pytest.mark.anyio


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def answer(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return text.split()[1], text.rpartition("\r\n")[2]


async def test_health_is_ok_and_nothing_else_is_there(port):
    server = HealthServer(Serving(healthz_port=port))
    await server.start()
    try:
        assert await answer(port, "/healthz") == ("200", "ok")
        assert await answer(port, "/healthz/ping") == ("200", "ok")
        assert (await answer(port, "/pods"))[0] == "404"
    finally:
        await server.close()


async def test_a_port_in_use_is_named(port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        server = HealthServer(Serving(healthz_port=port))
        with pytest.raises(StartError, match=rf"cannot listen on 127.0.0.1:{port}: .*--healthz-port"):
            await server.start()
        await server.close()


async def test_port_0_is_no_server():
    server = HealthServer(Serving(healthz_port=0))
    await server.start()
    await server.close()
    assert server._runner is None
