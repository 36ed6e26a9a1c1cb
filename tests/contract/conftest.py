"""Both servers under one contract: the embedded cluster, and a real kube-apiserver."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from agent.minicluster import MiniCluster
from tests.contract.client import Api, bearer

SERVERS = ("mini", pytest.param("real", marks=pytest.mark.real))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of all async tests."""
    return "asyncio"


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    """Which of the two servers the test runs against."""
    return str(request.param)


@pytest.fixture
async def api(connected: Api) -> AsyncIterator[Api]:
    """The API server under test, which is left without the test's nodes."""
    yield connected
    await connected.clean_up()


@pytest.fixture
def connected(server: str, request: pytest.FixtureRequest) -> Any:
    """The API server under test."""
    return request.getfixturevalue(f"{server}_api")


@pytest.fixture
async def mini_api() -> AsyncIterator[Api]:
    """An embedded cluster of the test's own."""
    async with MiniCluster() as cluster, aiohttp.ClientSession(headers=bearer(cluster)) as session:
        yield Api(session, cluster.url)


@pytest.fixture(scope="session")
async def real_api(control_plane: Any, anyio_backend: str) -> AsyncIterator[Api]:
    """The real cluster of the whole run."""
    connector = aiohttp.TCPConnector(ssl=admin_tls(control_plane))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Api(session, control_plane.url)
    await asyncio.sleep(0.25)  # aiohttp closes TLS connections without waiting for their last words


def admin_tls(control_plane: Any) -> ssl.SSLContext:
    """TLS as the administrator of the real cluster."""
    context = ssl.create_default_context(cafile=str(control_plane.ca_file))
    context.load_cert_chain(control_plane.admin_cert, control_plane.admin_key)
    return context


@pytest.fixture
def forget_history(server: str, request: pytest.FixtureRequest) -> Callable[[], Awaitable[None]]:
    """Makes the server forget all changes up to now; the embedded one is born without a past."""

    async def compact() -> None:
        if server == "mini":
            return
        port = request.getfixturevalue("control_plane").layout.etcd
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as etcd:
            async with etcd.post("/v3/kv/range", json={"key": "AA=="}) as response:
                revision = (await response.json())["header"]["revision"]
            async with etcd.post("/v3/kv/compaction", json={"revision": revision, "physical": True}) as response:
                assert response.status == 200, await response.text()

    return compact


@pytest.fixture
def name(node_name: str) -> str:
    """A name of the test's own: the real cluster is shared."""
    return node_name
