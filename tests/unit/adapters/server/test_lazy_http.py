"""When the HTTP of the ports is imported, told by a fresh interpreter."""

import os
import subprocess
import sys

import pytest

from tests.cluster.pairs import authority

pytestmark = pytest.mark.slow  # it imports aiohttp

SCRIPT = """
import asyncio, os, sys
from agent.adapters.clock import SystemClock
from agent.adapters.server.listener import Listener, listen

def load():
    from aiohttp import web

    async def answer(request):
        return web.Response(text="here")

    return answer

async def main():
    sock = listen("127.0.0.1", 0, flag="--port")
    listener = Listener(sock, load, clock=SystemClock())
    running = asyncio.create_task(listener.run())
    reader, writer = await asyncio.open_connection(*sock.getsockname())
    await asyncio.sleep(0.1)
    print("aiohttp" in sys.modules)
    writer.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print((await reader.read()).endswith(b"here"))
    running.cancel()
    await listener.close()

asyncio.run(main())
from aiohttp.connector import _SSL_CONTEXT_VERIFIED
print(_SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"], os.environ["SSL_CERT_FILE"], "SSL_CERT_DIR" in os.environ)
"""


def test_a_port_loads_aiohttp_with_the_first_request_and_no_system_cas_with_it(tmp_path):
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authority().pem)
    env = {**os.environ, "SSL_CERT_FILE": str(bundle)}
    env.pop("SSL_CERT_DIR", None)
    run = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True, env=env)
    assert run.stdout.splitlines() == ["False", "True", f"0 {bundle} False"]
