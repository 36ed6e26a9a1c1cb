"""How the API server's answers become our errors; a real one is asked in tests/integration."""

import asyncio
import json

import pytest
from aiohttp import web

from agent.adapters.credentials import load_credentials
from agent.adapters.kube import KubeNodes, Lane
from agent.ports import (
    AlreadyExists,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    Unauthorized,
    Unavailable,
)

pytestmark = pytest.mark.anyio


def status(code, reason="", message="words"):
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


@pytest.fixture
async def answering(tmp_path):
    """A server that gives one answer to everything, and the nodes as seen through it."""
    runners = []

    async def start(code, body, headers=None, wait=None):
        async def handle(_):
            if wait:
                await wait.wait()
            return web.Response(
                status=code, body=body if isinstance(body, bytes) else json.dumps(body), headers=headers
            )

        app = web.Application()
        app.router.add_route("*", "/{any:.*}", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(f"http://127.0.0.1:{port}")))
        lane = Lane(await load_credentials(str(kubeconfig)), architecture="amd64", timeout_seconds=0.2)
        runners.extend([lane.close, runner.cleanup])
        return KubeNodes(lane)

    yield start
    for close in runners:
        await close()


def kubeconfig_for(server):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
    }


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(401, "Unauthorized"), Unauthorized),
        (status(403, "Forbidden"), Forbidden),
        (status(404, "NotFound"), NotFound),
        (status(409, "AlreadyExists"), AlreadyExists),
        (status(409, "Conflict"), Conflict),
        (status(422, "Invalid"), Rejected),
        (status(429, "TooManyRequests"), Unavailable),
        (status(500, "InternalError"), Unavailable),
        (status(503, "ServiceUnavailable"), Unavailable),
        ((404, {"error": "a proxy's own 404"}), Unavailable),
        ((200, b"<html>"), Unavailable),
        ((200, b'{"kind": "No'), Unavailable),
        ((200, b"[]"), Unavailable),
        ((502, b""), Unavailable),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_an_answer_becomes_an_error_of_ours(answering, answer, error):
    nodes = await answering(*answer)
    with pytest.raises(error) as raised:
        await nodes.get("n1")
    assert type(raised.value) is error


async def test_the_servers_own_words_are_kept(answering):
    nodes = await answering(*status(403, "Forbidden", 'nodes "n1" is forbidden: User "u" cannot get'))
    with pytest.raises(Forbidden, match='nodes "n1" is forbidden: User "u" cannot get'):
        await nodes.get("n1")


async def test_retry_after_is_kept(answering):
    nodes = await answering(*status(429, "TooManyRequests"), headers={"Retry-After": "7"})
    with pytest.raises(Unavailable) as raised:
        await nodes.get("n1")
    assert raised.value.retry_after_seconds == 7


async def test_a_server_that_does_not_answer_is_unavailable_after_the_deadline(answering):
    nodes = await answering(200, {}, wait=asyncio.Event())
    with pytest.raises(Unavailable, match="no answer within 200ms"):
        await nodes.get("n1")


async def test_a_refused_connection_names_the_url_and_no_secret(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig_for("http://127.0.0.1:1")))
    lane = Lane(await load_credentials(str(path)), architecture="amd64")
    try:
        with pytest.raises(Unavailable) as raised:
            await KubeNodes(lane).get("n1")
    finally:
        await lane.close()
    assert str(raised.value).startswith('Get "http://127.0.0.1:1/api/v1/nodes/n1": Connect')
    assert "s3cret" not in str(raised.value)
