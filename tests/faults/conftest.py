import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.proxy import FaultProxy, through
from tests.faults.member import Member


@pytest.fixture(scope="session")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """Everybody's cluster, for tests that break only the way to it or what is their own.

    The others, which are in one group of xdist, have another fixture of this name: the `fragile_plane`.
    """
    return control_plane


@pytest.fixture(scope="session")
def fragile_plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of our own, because we break it; it gives a silent node up sooner than others do."""
    impatient = {"kube-controller-manager": ["--node-monitor-grace-period=20s"]}
    directory = tmp_path_factory.mktemp("fragile-plane")
    with ControlPlane(directory, binaries=binaries, extra_args=impatient) as cluster:
        yield cluster


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(plane.layout.apiserver) as running:
        yield running


@pytest.fixture
def kubeconfig(plane: ControlPlane, proxy: FaultProxy, node_name: str, tmp_path: Path) -> Path:
    """The node's own kubeconfig, through the proxy."""
    return through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "kubeconfig")


@pytest.fixture
def join(plane: ControlPlane, node_name: str, kubeconfig: Path, tmp_path: Path) -> Iterator[Callable[..., Member]]:
    """Starts the node, with short leases, and waits until it is a whole member of the cluster."""
    with ExitStack() as members:

        def start(*flags: str, kubeconfig: Path = kubeconfig) -> Member:
            member = Member.started(plane, node_name, tmp_path, *flags, kubeconfig=kubeconfig)
            members.callback(member.leave)
            return member

        yield start


@pytest.fixture(scope="module")
def shared_proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(plane.layout.apiserver) as running:
        yield running


@pytest.fixture(scope="module")
def residents(shared_proxy: FaultProxy) -> Iterator[list[Member]]:
    """The nodes behind the proxy that a module has started for all its tests, the latest last."""
    members: list[Member] = []
    yield members
    for member in members:
        member.leave()


@pytest.fixture
def member(
    plane: ControlPlane,
    shared_proxy: FaultProxy,
    residents: list[Member],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Member]:
    """A node behind `shared_proxy` that the tests of a module share: whole when they begin, and to be left so."""
    if not residents or not residents[-1].process.running:
        directory, name = tmp_path_factory.mktemp("member"), f"member-{secrets.token_hex(3)}"
        kubeconfig = through(shared_proxy.port, plane.node_kubeconfig(name), directory / "kubeconfig")
        residents.append(Member.started(plane, name, directory, kubeconfig=kubeconfig))
    residents[-1].wait_until_whole()
    yield residents[-1]
    shared_proxy.set(target_port=plane.layout.apiserver)
    residents[-1].go_on()
