"""What a server may do to a connection, and what comes of it: an error of ours, and no more memory than before."""

import asyncio
import json
import re
from contextlib import asynccontextmanager, suppress

import pytest

from agent.adapters.api_connection import ApiConnection
from agent.adapters.credentials import load_credentials
from agent.adapters.kube import KubeNodes, KubeSelection
from agent.ports import ApiError, Unavailable
from tests.faults.fuzz import RAW
from tests.faults.objects import NODE, event, page

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def lane_to(serve, tmp_path, **settings):
    """A connection to a server that does with a connection what it likes."""

    async def connected(reader, writer):
        with suppress(ConnectionError):
            await serve(reader, writer)
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        config = {
            "current-context": "c",
            "clusters": [
                {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}}
            ],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        connection = ApiConnection(
            await load_credentials(str(path)), architecture="amd64", timeout_seconds=60, **settings
        )
        try:
            yield connection
        finally:
            await connection.close()


def saying(content, heads=None):
    """A server that says this to every request, and hangs up."""

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        if heads is not None:
            heads.append(head.decode().lower())
        writer.write(content)
        await writer.drain()

    return serve


async def watched(connection, version="1"):
    return [change async for change in KubeSelection.node(connection, "n1").watch(version, seconds=60)]


def answer(obj):
    body = json.dumps(obj).encode() + b"\n"
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("content", RAW, ids=lambda content: str(content[:60]))
async def test_what_is_no_http_is_an_error_of_ours(tmp_path, content):
    async with lane_to(saying(content), tmp_path) as connection:
        with pytest.raises(ApiError):
            await KubeNodes(connection).get("n1")
        with suppress(ApiError):  # or it just ends, which the loop takes for a failure when it was short
            await watched(connection)


async def test_nothing_compressed_is_asked_for(tmp_path):
    heads = []
    async with lane_to(saying(answer(NODE), heads), tmp_path) as connection:
        await KubeNodes(connection).get("n1")
    assert "accept-encoding: identity\r\n" in heads[0]
    assert "gzip" not in heads[0]


async def test_who_says_more_than_was_asked_is_hung_up_on(tmp_path):
    hung_up = asyncio.Event()

    async def flood(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(NODE))
        try:
            while True:
                writer.write(answer({}) * 1000)
                await writer.drain()
                await asyncio.sleep(0)
        except ConnectionError:
            hung_up.set()

    async with lane_to(flood, tmp_path) as connection:
        assert await KubeNodes(connection).get("n1") == NODE
        async with asyncio.timeout(60):
            await hung_up.wait()


async def test_a_node_of_another_name_is_not_ours(tmp_path):
    other = {**NODE, "metadata": {**NODE["metadata"], "name": "other"}}
    async with lane_to(saying(answer(page(other))), tmp_path) as connection:
        with pytest.raises(Unavailable, match="it is about other"):
            await KubeSelection.node(connection, "n1").list()
    async with lane_to(saying(answer(event("ADDED", other))), tmp_path) as connection:
        with pytest.raises(Unavailable, match="it is about other"):
            await watched(connection)


async def test_there_is_one_node_of_a_name(tmp_path):
    async with lane_to(saying(answer(page(NODE, NODE))), tmp_path) as connection:
        with pytest.raises(Unavailable, match="there are 2 of one name"):
            await KubeSelection.node(connection, "n1").list()


@pytest.mark.parametrize("version", ["9" * 5000, "abc"])
async def test_a_version_is_handed_on_as_it_is(tmp_path, version):
    heads = []
    listed = page(NODE)
    listed["metadata"]["resourceVersion"] = version
    async with lane_to(saying(answer(listed), heads), tmp_path) as connection:
        assert (await KubeSelection.node(connection, "n1").list()).version == version
    async with lane_to(saying(answer({}), heads), tmp_path) as connection:
        with pytest.raises(ApiError):
            await watched(connection, version)
    assert f"resourceversion={version}&" in heads[1]


def http_answer(length):
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}".encode()


@pytest.mark.parametrize(
    ("content", "words"), [(b"", r"EOF\Z"), (http_answer(100), r"unexpected EOF\Z")], ids=["no answer", "half of one"]
)
async def test_a_server_that_hangs_up_is_told_of_in_gos_words(tmp_path, content, words):
    async with lane_to(saying(content), tmp_path) as connection:
        with pytest.raises(Unavailable, match=words):
            await KubeNodes(connection).get("n1")


class Noticed:
    """Notes whether requests were answered."""

    def __init__(self):
        self.notes = []

    def answered(self):
        self.notes.append("answered")

    def unanswered(self, error, *, waited_seconds=0.0):
        self.notes.append(str(error))


async def test_a_port_where_nobody_listens_is_told_of_in_gos_words_and_noticed(tmp_path):
    noticed = Noticed()
    async with lane_to(saying(b""), tmp_path):
        pass
    credentials = await load_credentials(str(tmp_path / "kubeconfig"))
    connection = ApiConnection(credentials, architecture="amd64", reachability=noticed)
    address = credentials.server.removeprefix("http://")
    refused = f'Get "{credentials.server}/api/v1/nodes/n1": dial tcp {address}: connect: connection refused'
    with pytest.raises(Unavailable, match=re.escape(refused)):
        await KubeNodes(connection).get("n1")
    assert noticed.notes == [refused]
    await connection.close()


STATUS = json.dumps({"kind": "Status", "message": "etcdserver: request timed out"})


def answering(line, body, headers=""):
    return saying(f"HTTP/1.1 {line}\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode())


@pytest.mark.parametrize(
    "serve",
    [
        answering("200 OK", "{}"),
        answering("500 Internal Server Error", STATUS),
        answering("429 Too Many Requests", "Too many requests, please try again later."),
    ],
    ids=["a success", "a refusal", "a server that is too busy"],
)
async def test_an_answer_of_the_api_server_is_noticed_whatever_it_says(tmp_path, serve):
    noticed = Noticed()
    async with lane_to(serve, tmp_path, reachability=noticed) as connection:
        with pytest.raises(ApiError):
            await KubeNodes(connection).get("n1")
    assert noticed.notes == ["answered"]


@pytest.mark.parametrize(
    ("serve", "words"),
    [
        (
            answering("503 Service Unavailable", "<html>\x1b[2J\nno server</html>"),
            'an error on the server ("<html>\ufffd[2J no server</html>") has prevented the request from succeeding '
            "(HTTP 503)",
        ),
        (answering("502 Bad Gateway", '{"error": "x"}'), 'an error on the server ("{\\"error\\": \\"x\\"}") has'),
        (answering("200 OK", "hello"), "the answer is no Kubernetes object"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), "unexpected EOF"),
        (saying(b"SSH-2.0-OpenSSH_9.6\r\n"), r'malformed HTTP response "SSH-2.0-OpenSSH_9.6\r\n"'),
    ],
    ids=["a page", "JSON", "no JSON", "half an answer", "no HTTP"],
)
async def test_an_answer_of_somebody_else_is_none_and_is_told_in_gos_words(tmp_path, serve, words):
    noticed = Noticed()
    async with lane_to(serve, tmp_path, reachability=noticed) as connection:
        with pytest.raises(Unavailable, match=re.escape(f'/api/v1/nodes/n1": {words}')) as caught:
            await KubeNodes(connection).get("n1")
    assert noticed.notes == [str(caught.value)]


async def test_a_pause_that_is_asked_for_without_an_object_is_a_pause(tmp_path):
    busy = answering("429 Too Many Requests", "Too many requests, please try again later.", "Retry-After: 3\r\n")
    async with lane_to(busy, tmp_path) as connection:
        with pytest.raises(Unavailable, match=r"^the server has received too many requests") as caught:
            await KubeNodes(connection).get("n1")
    assert caught.value.retry_after_seconds == 3
