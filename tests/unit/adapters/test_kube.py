"""How the API server's answers become our errors; a real one is asked in tests/contract."""

import asyncio
import base64
import json
import threading
from dataclasses import replace

import pytest
from aiohttp import web

from agent.adapters.answers import MOST_BYTES, refusal
from agent.adapters.api_connection import ApiConnection
from agent.adapters.credentials import load_credentials
from agent.adapters.kube import KubeNodes
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

    async def start(code, body, headers=None, wait=None, host="127.0.0.1", timeout_seconds=30.0):
        async def handle(_):
            if wait:
                await wait.wait()
            return web.Response(
                status=code, body=body if isinstance(body, bytes) else json.dumps(body), headers=headers
            )

        app = web.Application()
        app.router.add_route("*", "/{any:.*}", handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(f"http://{host}:{port}")))
        connection = ApiConnection(
            await load_credentials(str(kubeconfig)), architecture="amd64", timeout_seconds=timeout_seconds
        )
        runners.extend([connection.close, runner.cleanup])
        return KubeNodes(connection)

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


async def test_no_server_can_ask_a_heartbeat_to_wait_until_its_lease_is_over(answering):
    nodes = await answering(*status(429, "TooManyRequests"), headers={"Retry-After": "99999"}, timeout_seconds=10.0)
    with pytest.raises(Unavailable) as raised:
        await nodes.get("n1")
    assert raised.value.retry_after_seconds == 2.5  # of five tries each, and by up to a half more by chance


async def test_a_server_that_does_not_answer_is_unavailable_after_the_deadline(answering):
    nodes = await answering(200, {}, wait=asyncio.Event(), timeout_seconds=0.3)
    with pytest.raises(Unavailable, match="no answer within 300ms"):
        await nodes.get("n1")


async def test_a_refused_connection_names_the_url_and_no_secret(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig_for("http://127.0.0.1:1")))
    connection = ApiConnection(await load_credentials(str(path)), architecture="amd64")
    try:
        with pytest.raises(Unavailable) as raised:
            await KubeNodes(connection).get("n1")
    finally:
        await connection.close()
    assert str(raised.value).startswith(
        'Get "http://127.0.0.1:1/api/v1/nodes/n1": dial tcp 127.0.0.1:1: connect: connection refused'
    )
    assert "s3cret" not in str(raised.value)


async def test_a_name_and_a_password_are_sent_as_a_header_and_shown_nowhere(tmp_path, caplog):
    caplog.set_level(1)
    caplog.set_level(1, "agent")
    heads = []

    async def listen(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        config = kubeconfig_for(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        config["users"][0]["user"] = {"username": "someone", "password": "s3:cret"}
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        credentials = await load_credentials(str(path))
        connection = ApiConnection(credentials, architecture="amd64")
        with pytest.raises(Unavailable) as raised:
            await KubeNodes(connection).get("n1")
        await connection.close()
    encoded = base64.b64encode(b"someone:s3:cret").decode()
    assert f"Authorization: Basic {encoded}\r\n" in heads[0]
    shown = f"{credentials!r} {raised.value!r} {[(record.getMessage(), record.args) for record in caplog.records]}"
    assert "Response" in shown  # there was something to look at
    assert "s3:cret" not in shown
    assert encoded not in shown


@pytest.mark.parametrize(
    ("host", "message"),
    [("127.0.0.1:{port}", "the proxy answered 407 Who are you?"), ("127.0.0.1:x", "is no URL")],
    ids=["a proxy that refuses us", "no URL at all"],
)
async def test_the_password_of_a_proxy_is_not_told(tmp_path, host, message):
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig_for("https://192.0.2.1:6443")))
    credentials = await load_credentials(str(path))
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        address = host.format(port=proxy.sockets[0].getsockname()[1])
        credentials = replace(credentials, proxy=f"http://user:hunter2@{address}")
        connection = ApiConnection(credentials, architecture="amd64")
        with pytest.raises(Unavailable) as raised:
            await KubeNodes(connection).get("n1")
        await connection.close()
    assert str(raised.value).startswith('Get "https://192.0.2.1:6443/api/v1/nodes/n1": ')
    assert str(raised.value).endswith(message)


GOOD = {"metadata": {"name": "n1", "uid": "u", "resourceVersion": "1"}}


def with_status(**status):
    return {**GOOD, "status": status}


async def test_an_object_is_let_in_as_it_is(answering):
    nodes = await answering(200, with_status(capacity={"cpu": "4"}, extra=[1]))
    assert await nodes.get("n1") == with_status(capacity={"cpu": "4"}, extra=[1])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": None},
        {"metadata": {"name": "n1", "resourceVersion": "1"}},
        {"metadata": {"name": "n1", "uid": "", "resourceVersion": "1"}},
        {"metadata": {"name": "n1", "uid": 5, "resourceVersion": "1"}},
        {"metadata": {"name": "another", "uid": "u", "resourceVersion": "1"}},
        {"metadata": {**GOOD["metadata"], "labels": ["a"]}},
        {**GOOD, "spec": []},
        {**GOOD, "spec": {"podCIDRs": "10.0.0.0/24"}},
        with_status(conditions={}),
        with_status(conditions=[{"status": "True"}]),
        with_status(conditions=[{"type": "Ready", "status": "True"}]),
        with_status(capacity={"cpu": 4}),
        with_status(capacity={"cpu": "four"}),
        with_status(nodeInfo="linux"),
        b"[" * 100_000,
        b'{"metadata":' * 50_000,
    ],
    ids=str,
)
async def test_an_answer_that_makes_no_sense_is_no_answer(answering, body):
    nodes = await answering(200, body)
    with pytest.raises(Unavailable):
        await nodes.get("n1")


async def test_a_body_without_end_is_not_read_to_its_end(answering):
    nodes = await answering(200, b'{"metadata": "' + b"x" * (MOST_BYTES + 1) + b'"}')
    with pytest.raises(Unavailable, match=r"larger than|no answer within"):
        await nodes.get("n1")


async def test_a_redirect_is_not_followed(answering):
    nodes = await answering(302, b"", headers={"Location": "http://127.0.0.1:1/"})
    with pytest.raises(Unavailable, match="HTTP 302"):
        await nodes.get("n1")


@pytest.mark.parametrize(
    ("header", "seconds"), [("1", 1), ("999999999999", 10), ("-1", None), ("x", None), ("²", None)]
)
def test_retry_after_is_heeded_within_reason(header, seconds):
    assert refusal(429, {"kind": "Status"}, header).retry_after_seconds == seconds


async def test_a_connection_needs_none_of_the_threads_that_others_may_block(answering):
    nodes = await answering(200, GOOD, host="localhost")
    release = threading.Event()
    blocked = [asyncio.get_running_loop().run_in_executor(None, release.wait) for _ in range(64)]
    try:
        async with asyncio.timeout(60):
            assert await nodes.get("n1") == GOOD
    finally:
        release.set()
        await asyncio.gather(*blocked)


async def test_requests_are_counted_by_their_answer_or_the_lack_of_one(answering):
    nodes = await answering(*status(404, "NotFound"))
    with pytest.raises(NotFound):
        await nodes.get("n1")
    silent = await answering(*status(404, "NotFound"), wait=asyncio.Event(), timeout_seconds=0.3)
    with pytest.raises(Unavailable):
        await silent.delete("n1")
    for connection, expected in ((nodes._connection, ("404", "GET")), (silent._connection, ("<error>", "DELETE"))):
        requests, durations = connection.metrics.families()
        ((_, labels, count, _),) = requests.samples
        assert (labels["code"], labels["method"], count) == (*expected, 1)
        assert durations.samples[-1] == ("_count", {"host": labels["host"], "verb": expected[1]}, 1, None)
