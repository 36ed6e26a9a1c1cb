from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NODES, PLAIN
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


@pytest.fixture(scope="module")
def start_watched(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., WatchedNode]]:
    """Starts nodes by name, which live as long as the module."""
    with ExitStack() as running:

        def start(name: str, *flags: str) -> WatchedNode:
            running.callback(control_plane.api.delete, f"{NODES}/{name}")
            proxy = running.enter_context(FaultProxy(control_plane.layout.apiserver))
            folder = tmp_path_factory.mktemp("watched")
            healthz, main, read_only = free_ports(3)
            own = control_plane.node_kubeconfig(name)
            process = AgentProcess(
                f"--kubeconfig={through(proxy.port, own, folder / 'kubeconfig')}",
                f"--hostname-override={name}",
                f"--healthz-port={healthz}",
                "--address=127.0.0.1",
                f"--port={main}",
                f"--read-only-port={read_only}",
                f"--cert-dir={folder / 'pki'}",
                f"--root-dir={folder}",
                "--node-lease-duration-seconds=4",
                "--node-status-update-frequency=1s",
                *flags,
                log=folder / "fake-kubelet.log",
            )
            running.callback(process.stop)  # before its Node goes, or it would register again
            process.start()
            return WatchedNode(process, proxy, healthz, read_only)

        yield start


@pytest.fixture
def watch_node(start_watched: Callable[..., WatchedNode], node_name: str) -> Callable[..., WatchedNode]:
    """Starts this test's node."""
    return lambda *flags: start_watched(node_name, *flags)


def _get(port: int, path: str) -> Page:
    answer = PLAIN.ask(port, "GET", path)
    return Page(answer.status, answer.body.decode())
