import http.client
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.proxy import FaultProxy, through


class Page(NamedTuple):
    """What a server answered."""

    status: int
    text: str


@dataclass(frozen=True)
class WatchedNode:
    """A node with short leases, its way to the API server in our hands, and open ports to look in."""

    process: AgentProcess
    proxy: FaultProxy
    healthz_port: int
    read_only_port: int

    def health(self, path: str = "/healthz") -> Page:
        return _get(self.healthz_port, path)

    def read(self, path: str) -> Page:
        return _get(self.read_only_port, path)


@pytest.fixture
def watch_node(
    control_plane: ControlPlane, node_name: str, tmp_path: Path, start_agent: Callable[..., AgentProcess]
) -> Iterator[Callable[..., WatchedNode]]:
    """Starts this test's node."""
    started: list[AgentProcess] = []
    with FaultProxy(control_plane.layout.apiserver) as proxy:

        def start(*flags: str) -> WatchedNode:
            healthz, main, read_only = free_ports(3)
            own = control_plane.node_kubeconfig(node_name)
            process = start_agent(
                f"--kubeconfig={through(proxy.port, own, tmp_path / 'kubeconfig')}",
                f"--hostname-override={node_name}",
                f"--healthz-port={healthz}",
                "--address=127.0.0.1",
                f"--port={main}",
                f"--read-only-port={read_only}",
                f"--cert-dir={tmp_path / 'pki'}",
                f"--root-dir={tmp_path}",
                "--node-lease-duration-seconds=4",
                "--node-status-update-frequency=1s",
                *flags,
            )
            started.append(process)
            return WatchedNode(process, proxy, healthz, read_only)

        yield start
        for process in started:
            process.stop()  # or it would register again
        control_plane.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


def _get(port: int, path: str) -> Page:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return Page(response.status, response.read().decode())
    finally:
        connection.close()
