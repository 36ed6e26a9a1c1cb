"""The connections of the HTTP client: when one is used again, when it is closed, and what goes over it."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from agent.adapters.http1 import HttpError
from agent.adapters.http_client import HttpClient

pytestmark = pytest.mark.anyio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Gives every request the answer that a test asks for, and keeps the requests by connection."""

    def __init__(self, *answers):
        self.connections = []
        self.closed = []  # an event for each connection, set when the client has closed it
        self.requested = asyncio.Event()
        self._answers = list(answers)

    async def serve(self, reader, writer):
        requests, closed = [], asyncio.Event()
        self.connections.append(requests)
        self.closed.append(closed)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                requests.append(head.decode())
                self.requested.set()
                answer = self._answers.pop(0) if self._answers else ANSWER
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        writer.transport.abort()
        closed.set()


@asynccontextmanager
async def client_of(server, *, url="http://127.0.0.1:{port}", **settings):
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        settings = {key: value.format(port=port) if key == "proxy" else value for key, value in settings.items()}
        client = HttpClient(url.format(port=port), **settings)
        try:
            yield client
        finally:
            client.close()
            async with asyncio.timeout(30):
                for closed in server.closed:
                    await closed.wait()
                await asyncio.sleep(0)  # for the transports to be gone


async def body_of(client, method="GET", target="/x", body=None):
    async with asyncio.timeout(30):
        with await client.send(method, target, body) as response:
            content = b""
            while part := await response.read_part():
                content += part
            return content


async def test_requests_in_a_row_share_a_connection():
    server = Server()
    async with client_of(server) as client:
        for _ in range(3):
            assert await body_of(client) == b"{}"
    assert [len(requests) for requests in server.connections] == [3]


async def test_requests_at_the_same_time_have_a_connection_each():
    server = Server()
    async with client_of(server) as client:
        with await client.send("GET", "/a"), await client.send("GET", "/b"):
            pass
    assert [len(requests) for requests in server.connections] == [1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        ANSWER + b"more",
    ],
    ids=["connection: close", "HTTP/1.0", "more than was asked for"],
)
async def test_a_connection_that_cannot_take_another_request_is_closed(answer):
    server = Server(answer)
    async with client_of(server) as client:
        assert await body_of(client) == await body_of(client) == b"{}"
    assert [len(requests) for requests in server.connections] == [1, 1]


async def test_an_answer_that_was_not_read_to_its_end_closes_its_connection():
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{")
    async with client_of(server) as client:
        with await client.send("GET", "/x") as response:
            assert await response.read_part() == b"{"
        assert await body_of(client) == b"{}"
    assert len(server.connections) == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_request_on_a_connection_that_the_server_closes_is_sent_again_on_a_new_one(method):
    server = Server(ANSWER, None)
    async with client_of(server) as client:
        await body_of(client)
        assert await body_of(client, method) == b"{}"
    assert [len(requests) for requests in server.connections] == [2, 1]


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_request_that_may_not_be_repeated_is_not(method):
    server = Server(ANSWER, None)
    async with client_of(server) as client:
        await body_of(client)
        with pytest.raises(HttpError, match=r"\AEOF\Z"):
            await body_of(client, method, body=b"")
    assert [len(requests) for requests in server.connections] == [2]


async def test_a_request_is_not_sent_a_third_time():
    server = Server(ANSWER, None, None)
    async with client_of(server) as client:
        await body_of(client)
        with pytest.raises(HttpError, match=r"\AEOF\Z"):
            await body_of(client)
    assert [len(requests) for requests in server.connections] == [2, 1]


async def test_a_cancelled_request_leaves_no_connection_behind():
    server = Server(b"")
    async with client_of(server) as client:
        request = asyncio.create_task(body_of(client))
        await server.requested.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        async with asyncio.timeout(30):
            await server.closed[0].wait()
        assert await body_of(client) == b"{}"
    assert len(server.connections) == 2


async def test_idle_connections_are_closed_when_asked():
    server = Server()
    async with client_of(server) as client:
        await body_of(client)
        client.close_idle()
        async with asyncio.timeout(30):
            await server.closed[0].wait()
        await body_of(client)
    assert len(server.connections) == 2


async def test_no_more_than_32_connections_are_kept():
    server = Server()
    async with client_of(server) as client:
        for response in [await client.send("GET", "/x") for _ in range(40)]:
            with response:
                await response.read_part()
        async with asyncio.timeout(30):
            for closed in server.closed[32:]:
                await closed.wait()
        assert not any(closed.is_set() for closed in server.closed[:32])


async def test_a_retired_client_ends_with_the_last_request_under_way():
    server = Server()
    async with client_of(server) as client:
        with await client.send("GET", "/x") as response:
            client.retire()
            assert await response.read_part() == b"{}"
        async with asyncio.timeout(30):
            await server.closed[0].wait()


async def test_a_body_that_is_not_read_is_not_taken_from_the_network():
    sent = 0

    async def flood(reader, writer):
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(ConnectionError):
            while sent < 2**30:
                writer.write(b"x" * 65536)
                await writer.drain()
                sent += 65536
                more.set()
        writer.transport.abort()
        server.closed[0].set()

    more, server = asyncio.Event(), Server()
    server.closed.append(asyncio.Event())
    server.serve = flood
    async with client_of(server) as client:
        with await client.send("GET", "/x") as response:
            before = -1
            while sent != before:  # until the kernel's buffers are full
                before = sent
                await asyncio.sleep(0.3)
            assert sent < 2**26
            more.clear()
            async with asyncio.timeout(30):
                while not more.is_set():
                    assert 0 < len(await response.read_part()) < 2**17


async def test_a_path_cannot_add_a_line_to_the_request():
    server = Server()
    async with client_of(server, url="http://127.0.0.1:{port}/base/") as client:
        await body_of(client, target="/pods/a b\r\nX: y/ü?a=%20b")
    assert server.connections[0][0].startswith(
        "GET /base/pods/a%20b%0D%0AX:%20y/%C3%BC?a=%20b HTTP/1.1\r\nHost: 127.0.0.1"
    )


async def test_a_header_cannot_add_a_line_to_the_request_and_is_not_shown():
    client = HttpClient("http://127.0.0.1:1", headers=[("Authorization", "Bearer s3cret\nX: y")])
    with pytest.raises(HttpError, match='invalid header field value for "Authorization"') as raised:
        await client.send("GET", "/")
    assert "s3cret" not in str(raised.value)
    client.close()


async def test_a_proxy_gets_the_whole_url_of_a_server_without_tls():
    server = Server()
    proxy = "http://some%40one:pa%2Fss@127.0.0.1:{port}"
    async with client_of(server, url="http://api.invalid:8080", proxy=proxy) as client:
        assert await body_of(client) == b"{}"
    head = server.connections[0][0]
    assert head.startswith("GET http://api.invalid:8080/x HTTP/1.1\r\nHost: api.invalid:8080\r\n")
    assert "Proxy-Authorization: Basic c29tZUBvbmU6cGEvc3M=\r\n" in head


async def test_a_name_without_an_address_is_reported_in_gos_words():
    client = HttpClient("http://nowhere.invalid:1")
    with pytest.raises(HttpError, match=r"dial tcp: lookup nowhere\.invalid: "):
        await client.send("GET", "/")
    client.close()
