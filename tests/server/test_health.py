"""/healthz of a daemon that loses its API server, asked as machines ask."""

import http.client
import os
import signal
import socket
import subprocess
import sys

import psutil
import pytest

from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

LEASE_SECONDS = 4


def healthcheck(port):
    """What `fake-kubelet healthcheck` prints, and its exit code."""
    argv = [sys.executable, "-m", "agent", "healthcheck", "--healthz-port", str(port)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout.strip()


def is_beating(node):
    return node.read("/metrics").text.count('fake_kubelet_loop_duration_seconds_count{loop="lease"}') == 1


def missed(node):
    name = "fake_kubelet_lease_renewals_missed_total "
    lines = node.read("/metrics").text.splitlines()
    return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_health_is_red_with_the_reason_while_the_server_is_away_for_longer_than_a_lease_and_green_after(watch_node):
    node = watch_node()
    eventually(lambda: is_beating(node), within=20)
    assert node.health() == (200, "ok")
    assert healthcheck(node.healthz_port) == (0, "ok")

    node.proxy.set(kill=True, refuse=True)
    red = eventually(lambda: (page := node.health()).status == 500 and page, within=LEASE_SECONDS + 15)
    assert "[-]lease failed: no success for " in red.text
    assert "/leases/" in red.text  # what was tried
    code, words = healthcheck(node.healthz_port)
    assert code == 1
    assert words.startswith("lease failed: no success for ")
    assert "[-]syncloop failed: reason withheld" in node.read("/healthz").text  # a kubelet's words
    assert node.process.running

    node.proxy.set()
    eventually(lambda: node.health() == (200, "ok"), within=15)
    assert missed(node) >= 2


def test_a_daemon_that_stands_still_is_not_well_and_the_renewals_it_missed_are_counted(watch_node):
    node = watch_node()
    eventually(lambda: is_beating(node), within=20)
    os.kill(node.process.pid, signal.SIGSTOP)
    try:
        code, words = healthcheck(node.healthz_port)
    finally:
        os.kill(node.process.pid, signal.SIGCONT)
    assert (code, words) == (1, f"http://127.0.0.1:{node.healthz_port}/healthz does not answer within 5 s")
    eventually(lambda: node.health() == (200, "ok"), within=15)
    assert missed(node) >= 2


def test_who_comes_from_elsewhere_sees_neither_the_page_nor_a_reason(watch_node):
    found = psutil.net_if_addrs().items()
    own = [a.address for name, addresses in found if name != "lo" for a in addresses if a.family == socket.AF_INET]
    if not own:
        pytest.skip("this machine has no address but loopback")
    node = watch_node("--healthz-bind-address=0.0.0.0")
    eventually(lambda: is_beating(node), within=20)

    def status(host, path):
        connection = http.client.HTTPConnection(host, node.healthz_port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    assert [status("127.0.0.1", path) for path in ("/", "/healthz", "/healthz/lease")] == [200, 200, 200]
    assert [status(own[0], path) for path in ("/", "/healthz", "/healthz/lease")] == [403, 200, 403]


def test_where_no_daemon_is_that_is_said():
    (free_port,) = free_ports(1)
    code, words = healthcheck(free_port)
    assert code == 1
    assert words.startswith(f"nobody answers at http://127.0.0.1:{free_port}/healthz: ")
