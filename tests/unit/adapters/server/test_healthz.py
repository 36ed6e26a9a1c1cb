import asyncio
import logging
import socket

import pytest
from aiohttp.test_utils import make_mocked_request

from agent.adapters.server.health_server import HealthServer
from agent.core.node_view import NodeView
from tests.fakes import FakeClock, running
from tests.settings import Serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def faults():
    return {}


@pytest.fixture
def checked():
    return []


@pytest.fixture
async def server(port, faults, checked):
    server = HealthServer(
        Serving(healthz_port=port),
        clock=FakeClock(),
        node_name="n1",
        loops=["lease", "watch"],
        faults=lambda: faults,
        observe=lambda name, is_well: checked.append((name, is_well)),
    )
    async with running(server):
        yield server


async def answer(port, path, *, method="GET", host="127.0.0.1"):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = text.partition("\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.usefixtures("server")
async def test_health_is_ok_in_kubelets_words_and_nothing_else_is_there(port):
    assert await answer(port, "/healthz") == (200, "ok")
    assert await answer(port, "/healthz/ping") == (200, "ok")
    assert await answer(port, "/pods") == (404, "404 page not found\n")
    assert await answer(port, "/healthz?verbose") == (
        200,
        "[+]ping ok\n[+]lease ok\n[+]watch ok\nhealthz check passed\n",
    )


@pytest.mark.usefixtures("server")
async def test_a_loop_that_is_late_turns_health_red_and_says_why(port, faults, checked):
    faults["lease"] = "no success for 41s: no route"
    red = "[+]ping ok\n[-]lease failed: no success for 41s: no route\n[+]watch ok\nhealthz check failed\n"
    assert await answer(port, "/healthz") == (500, red)
    assert checked == [("ping", True), ("lease", False), ("watch", True)]
    assert await answer(port, "/healthz/lease") == (500, "internal server error: no success for 41s: no route\n")
    assert await answer(port, "/healthz/watch") == (200, "ok")


@pytest.mark.usefixtures("server")
async def test_checks_can_be_left_out(port, faults):
    faults["lease"] = "late"
    assert await answer(port, "/healthz?exclude=lease") == (200, "ok")
    status, text = await answer(port, "/healthz?exclude=lease&exclude=nonsense&verbose=")
    assert status == 200
    assert "[+]lease excluded: ok\n" in text
    assert 'warn: some health checks cannot be excluded: no matches for "nonsense"\n' in text


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:10248", "", "n1"])
async def test_who_comes_by_a_name_is_not_told_anything(port, faults, host):
    faults["lease"] = "no route to 192.0.2.1"
    status, text = await answer(port, "/", host=host)
    assert status == 403
    assert "n1</h1>" not in text
    assert "[-]lease failed: reason withheld\n" in (await answer(port, "/healthz", host=host))[1]
    assert (await answer(port, "/healthz/lease", host=host))[0] == 403


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("host", ["127.0.0.1:10248", "localhost", "localhost:1", "[::1]:10248", "192.0.2.7"])
async def test_who_comes_by_an_address_sees_the_page(port, host):
    status, text = await answer(port, "/", host=host)
    assert status == 200
    assert "<h1>n1</h1>" in text


async def test_the_page_shows_the_node_as_soon_as_there_is_one(server, port):
    assert "not registered" in (await answer(port, "/"))[1]
    server.follow(lambda: NodeView(node_name="n1", node={}, lease_age_seconds=3.0))
    assert "The lease was renewed 3 s ago" in (await answer(port, "/"))[1]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_the_page_can_only_be_read(port, method):
    assert (await answer(port, "/", method=method))[0] == 405


@pytest.mark.usefixtures("server")
async def test_a_head_is_a_page_without_the_page(port):
    assert await answer(port, "/", method="HEAD") == (200, "")


async def test_a_port_in_use_is_named_once_and_tried_again_as_a_kubelet_does(port, caplog):
    clock, taken = FakeClock(), socket.create_server(("127.0.0.1", port))
    async with running(HealthServer(Serving(healthz_port=port), clock=clock)):
        await clock.advance(20)
        taken.close()
        await clock.advance(5)
        assert await answer(port, "/healthz") == (200, "ok")
    told = [record.args for record in caplog.records if record.levelno >= logging.ERROR]
    assert [str(fields["err"]) for fields in told] == [f"cannot listen on 127.0.0.1:{port}: Address already in use"]
    assert "--healthz-port" in told[0]["hint"]


async def test_port_0_is_no_server():
    await HealthServer(Serving(healthz_port=0), clock=FakeClock()).run()  # there is nothing to wait for


class Transport:
    """A connection from somewhere."""

    def __init__(self, peer):
        self._peer = peer

    def get_extra_info(self, name, default=None):
        return (self._peer, 1) if name == "peername" else default


async def told(peer, path="/", *, status_page="loopback", host="127.0.0.1"):
    """What somebody from there is told by a node that is not well."""
    serving = Serving(status_page=status_page, healthz_bind_address="0.0.0.0")
    server = HealthServer(
        serving, clock=FakeClock(), loops=["lease"], faults=lambda: {"lease": "no route to 192.0.2.1"}
    )
    request = make_mocked_request("GET", path, headers={"Host": host}, transport=Transport(peer))
    response = await server._load()(request)
    return response.status, response.body.decode()


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
async def test_who_is_on_this_machine_sees_the_page(peer):
    assert (await told(peer))[0] == 200
    assert "no route" in (await told(peer, "/healthz"))[1]


@pytest.mark.parametrize("peer", ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7", "169.254.1.1", "fe80::1%eth0", ""])
async def test_who_comes_from_elsewhere_is_told_what_a_kubelet_tells_and_no_more(peer):
    for path in ("/", "/healthz/lease"):
        assert (await told(peer, path))[0] == 403
    assert await told(peer, "/healthz/ping") == (200, "ok")
    status, text = await told(peer, "/healthz")
    assert (status, "no route" in text, "[-]lease failed: reason withheld" in text) == (500, False, True)


async def test_the_page_can_be_for_all_and_for_nobody():
    assert (await told("192.0.2.7", status_page="all"))[0] == 200
    assert "no route" in (await told("192.0.2.7", "/healthz/lease", status_page="all"))[1]
    assert (await told("192.0.2.7", status_page="all", host="evil.example"))[0] == 403
    assert (await told("127.0.0.1", status_page="none"))[0] == 404
    assert "reason withheld" in (await told("127.0.0.1", "/healthz", status_page="none"))[1]


async def test_a_page_that_fails_is_one_line_a_minute_and_tells_nothing(server, port, caplog):
    server.follow(lambda: {}["secret"])
    for _ in range(3):
        assert await answer(port, "/") == (500, "500 Internal Server Error\n")
    assert [record.msg for record in caplog.records if record.exc_info] == ["Unable to answer a request"]
