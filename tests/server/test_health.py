"""/healthz of a daemon that loses its API server, asked as machines ask."""

import os
import secrets
import signal
import socket
import sys

import psutil
import pytest

from tests.cluster.api import PLAIN
from tests.cluster.command import completed
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually


@pytest.fixture(scope="module")
def shared(start_watched):
    return start_watched(f"health-{secrets.token_hex(3)}", "--healthz-bind-address=0.0.0.0")


@pytest.fixture
def node(shared):
    """One node for all tests, well at the beginning of each."""
    eventually(lambda: is_beating(shared) and shared.health() == (200, "ok"))
    yield shared
    shared.proxy.set()


def healthcheck(port):
    """What `fake-kubelet healthcheck` prints, and its exit code."""
    argv = [sys.executable, "-m", "agent", "healthcheck", "--healthz-port", str(port)]
    done = completed(argv)
    return done.returncode, done.stdout.strip()


def is_beating(node):
    return node.read("/metrics").text.count('fake_kubelet_loop_duration_seconds_count{loop="lease"}') == 1


def missed(node):
    name = "fake_kubelet_lease_renewals_missed_total "
    lines = node.read("/metrics").text.splitlines()
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_health_is_red_with_the_reason_while_the_server_is_away_for_longer_than_a_lease_and_green_after(node):
    eventually(lambda: healthcheck(node.healthz_port) == (0, "ok"))
    before = missed(node)
    node.proxy.set(kill=True, refuse=True)
    red = eventually(lambda: (page := node.health()).status == 500 and page)
    assert "[-]lease failed: no success for " in red.text
    assert "/leases/" in red.text  # what was tried
    code, words = healthcheck(node.healthz_port)
    assert code == 1
    assert words.startswith("lease failed: no success for ")
    assert "[-]syncloop failed: reason withheld" in node.read("/healthz").text  # a kubelet's words
    assert node.process.running

    node.proxy.set()
    eventually(lambda: node.health() == (200, "ok"))
    eventually(lambda: missed(node) >= before + 2)


def test_a_daemon_that_stands_still_is_not_well_and_the_renewals_it_missed_are_counted(node):
    before = missed(node)
    os.kill(node.process.pid, signal.SIGSTOP)
    try:
        code, words = healthcheck(node.healthz_port)
    finally:
        os.kill(node.process.pid, signal.SIGCONT)
    assert (code, words) == (1, f"http://127.0.0.1:{node.healthz_port}/healthz does not answer within 5 s")
    eventually(lambda: node.health() == (200, "ok"))
    eventually(lambda: missed(node) >= before + 2)


def test_who_comes_from_elsewhere_sees_neither_the_page_nor_a_reason(node):
    found = psutil.net_if_addrs().items()
    own = [a.address for name, addresses in found if name != "lo" for a in addresses if a.family == socket.AF_INET]
    if not own:
        pytest.skip("this machine has no address but loopback")

    def statuses(host):
        asked = [PLAIN.ask(node.healthz_port, "GET", path, host=host, source=host) for path in PATHS]
        return [answer.status for answer in asked]

    eventually(lambda: statuses("127.0.0.1") == [200, 200, 200])
    eventually(lambda: statuses(own[0]) == [403, 200, 403])


PATHS = ("/", "/healthz", "/healthz/lease")


def test_where_no_daemon_is_that_is_said():
    (free_port,) = free_ports(1)
    code, words = healthcheck(free_port)
    assert code == 1
    assert words.startswith(f"nobody answers at http://127.0.0.1:{free_port}/healthz: ")
