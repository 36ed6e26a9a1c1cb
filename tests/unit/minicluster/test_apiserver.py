"""Who may use the embedded cluster: the bearer of its token, and no web page."""

from __future__ import annotations

import asyncio
import io
import json
import socket

import aiohttp
import pytest

from agent.minicluster import MiniCluster
from agent.minicluster.cluster import MAX_UNAUTHENTICATED

pytestmark = pytest.mark.anyio

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
REQUESTS = [
    ("GET", "/"),
    ("GET", "/version"),
    ("GET", "/api"),
    ("GET", "/api/v1/nodes"),
    ("GET", "/api/v1/nodes?watch=true"),
    ("GET", "/api/v1/nodes/"),
    ("GET", "//api/v1/nodes"),
    ("GET", "/openapi/v3"),
    ("GET", "/healthz/../api/v1/nodes"),
    ("GET", "/nothing"),
    ("HEAD", "/api/v1/nodes"),
    ("OPTIONS", "/api/v1/nodes"),
    ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
    ("POST", "/api/v1/namespaces/default/pods"),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
    ("DELETE", "/api/v1/nodes"),
]


async def status(cluster: MiniCluster, method: str, path: str, headers: dict[str, str]) -> int:
    async with aiohttp.ClientSession() as session:
        body = json.dumps(POD) if method == "POST" else None
        url = f"{cluster.url}{path}"
        async with session.request(method, url, data=body, headers=headers, timeout=ANSWER) as response:
            return response.status


ANSWER = aiohttp.ClientTimeout(total=30)
BAD = {
    "none": {},
    "empty": {"Authorization": ""},
    "another": {"Authorization": "Bearer anyone"},
    "no token": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": "Basic {token}"},
    "no scheme": {"Authorization": "{token}"},
    "longer": {"Authorization": "Bearer {token}x"},
    "shorter": {"Authorization": "Bearer {half}"},
    "not ASCII": {"Authorization": "Bearer \u00ff"},
    "in the query": {"X-Token": "{token}"},
}


@pytest.mark.parametrize(("method", "path"), REQUESTS)
async def test_without_the_token_nothing_is_answered(method: str, path: str) -> None:
    async with MiniCluster() as cluster:
        assert await status(cluster, method, path, {}) == 401


@pytest.mark.parametrize("headers", BAD.values(), ids=BAD)
async def test_another_token_is_none(headers: dict[str, str]) -> None:
    async with MiniCluster() as cluster:
        half = cluster.token[:20]
        sent = {name: value.format(token=cluster.token, half=half) for name, value in headers.items()}
        assert await status(cluster, "GET", f"/api/v1/nodes?token={cluster.token}", sent) == 401
        assert await status(cluster, "GET", "/api/v1/nodes", {"Authorization": f"Bearer {cluster.token}"}) == 200


async def test_every_cluster_has_a_token_of_its_own() -> None:
    assert MiniCluster().token != MiniCluster().token
    assert len(MiniCluster().token) >= 32


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping"])
async def test_health_is_for_everybody(path: str) -> None:
    async with MiniCluster() as cluster:
        assert await status(cluster, "GET", path, {}) == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1"])
@pytest.mark.parametrize("path", ["/api/v1/nodes", "/healthz"])
async def test_a_web_page_is_refused_even_with_the_token(origin: str, path: str) -> None:
    async with MiniCluster() as cluster:
        assert (
            await status(cluster, "GET", path, {"Authorization": f"Bearer {cluster.token}"} | {"Origin": origin}) == 403
        )


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example:{port}",
        "127.0.0.1@evil.example",
        "evil.example/127.0.0.1",
        "[evil.example]",
        "127.0.0.1:{port},evil.example",
        ":{port}",
        "",
    ],
)
async def test_a_name_that_leads_here_is_refused_even_with_the_token(host: str) -> None:
    async with MiniCluster() as cluster:
        port = cluster.url.rpartition(":")[2]
        sent = {"Authorization": f"Bearer {cluster.token}"} | {"Host": host.format(port=port)}
        assert await status(cluster, "GET", "/api/v1/nodes", sent) in {400, 403}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:{port}", "[::1]:{port}", "[::1]"])
async def test_an_address_and_localhost_are_ours(host: str) -> None:
    async with MiniCluster() as cluster:
        sent = {"Authorization": f"Bearer {cluster.token}"} | {"Host": host.format(port=cluster.url.rpartition(":")[2])}
        assert await status(cluster, "GET", "/api/v1/nodes", sent) == 200


async def test_a_request_without_a_host_is_refused() -> None:
    async with MiniCluster() as cluster:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(cluster.url.rpartition(":")[2]))
        writer.write(f"GET /version HTTP/1.0\r\nAuthorization: Bearer {cluster.token}\r\n\r\n".encode())
        async with asyncio.timeout(30):
            assert (await reader.readline()).split()[1] in {b"400", b"403"}
        writer.close()


async def test_strangers_take_no_more_than_a_few_connections_and_no_place_of_others() -> None:
    """Those who connect and say nothing make room for those who come later; who has shown the token stays."""
    async with (
        MiniCluster() as cluster,
        aiohttp.ClientSession(cluster.url, headers={"Authorization": f"Bearer {cluster.token}"}) as session,
    ):
        watch = await session.get("/api/v1/nodes?watch=true")
        address = ("127.0.0.1", int(cluster.url.rpartition(":")[2]))
        strangers = [await asyncio.open_connection(*address) for _ in range(3 * MAX_UNAUTHENTICATED)]
        async with asyncio.timeout(60):
            ended = [await reader.read() for reader, _ in strangers[:MAX_UNAUTHENTICATED]]
        assert ended == [b""] * MAX_UNAUTHENTICATED
        async with session.post("/api/v1/nodes", json={"metadata": {"name": "n"}}) as response:
            assert response.status == 201
        async with asyncio.timeout(60):
            assert b'"ADDED"' in await watch.content.readline()
        watch.close()
        for _, writer in strangers:
            writer.transport.abort()


async def test_a_body_that_is_too_large_is_refused() -> None:
    body = io.BytesIO(b"{" + b" " * (4 << 20))
    async with (
        MiniCluster() as cluster,
        aiohttp.ClientSession(cluster.url, headers={"Authorization": f"Bearer {cluster.token}"}) as session,
        session.post("/api/v1/nodes", data=body) as response,
    ):
        assert response.status == 413


async def test_it_ends_in_spite_of_strangers() -> None:
    async with MiniCluster() as cluster:
        address = ("127.0.0.1", int(cluster.url.rpartition(":")[2]))
        with socket.create_connection(address) as stranger:
            await asyncio.sleep(0)
            assert stranger.fileno() > 0


async def test_what_the_cluster_shows_to_kubelets_is_known_in_a_review_and_opens_nothing() -> None:
    """A Node may have any address, so whoever is there must not become the administrator."""
    async with MiniCluster() as cluster:
        shown = cluster.kubelet_token
        assert await status(cluster, "GET", "/api/v1/nodes", {"Authorization": f"Bearer {shown}"}) == 401
        headers = {"Authorization": f"Bearer {cluster.token}"}
        async with aiohttp.ClientSession() as session:
            url = f"{cluster.url}/apis/authentication.k8s.io/v1/tokenreviews"
            async with session.post(url, json={"spec": {"token": shown}}, headers=headers, timeout=ANSWER) as response:
                reviewed = (await response.json())["status"]
        assert (reviewed["authenticated"], reviewed["user"]["username"]) == (True, "kube-apiserver-kubelet-client")
