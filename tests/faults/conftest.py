from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.proxy import FaultProxy, through
from tests.cluster.waiting import eventually
from tests.faults.member import BRISK, Member


@pytest.fixture(scope="session")
def plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of our own, because we break it; it gives a silent node up sooner than others do."""
    impatient = {"kube-controller-manager": ["--node-monitor-grace-period=20s"]}
    directory = tmp_path_factory.mktemp("broken-plane")
    with ControlPlane(directory, binaries=binaries, extra_args=impatient) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def admin(plane: ControlPlane) -> Api:
    return plane.api


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(plane.layout.apiserver) as running:
        yield running


@pytest.fixture
def kubeconfig(plane: ControlPlane, proxy: FaultProxy, node_name: str, tmp_path: Path) -> Path:
    """The node's own kubeconfig, through the proxy."""
    return through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "kubeconfig")


@pytest.fixture
def join(
    plane: ControlPlane, node_name: str, kubeconfig: Path, start_agent: Callable[..., AgentProcess]
) -> Iterator[Callable[..., Member]]:
    """Starts the node, with short leases, and waits until it is a whole member of the cluster."""
    members = []

    def start(*flags: str, kubeconfig: Path = kubeconfig) -> Member:
        own = ("--kubeconfig", str(kubeconfig), "--hostname-override", node_name)
        member = Member(plane, node_name, start_agent(*own, *BRISK, *flags))
        members.append(member)
        eventually(member.is_whole)
        return member

    yield start
    for member in members:
        member.process.stop()
        member.delete_node()
