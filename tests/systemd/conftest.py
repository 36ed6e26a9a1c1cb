import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.lacking import lacking
from tests.cluster.node_view import NodeView
from tests.systemd.machine import Machine
from tests.systemd.member import Member
from tests.systemd.rootfs import NoRootfs, rootfs
from tests.systemd.wheelhouse import install


@pytest.fixture(scope="session")
def layers(root: None) -> list[Path]:
    """A Debian, and our wheel installed in it without a network."""
    if shutil.which("systemd-nspawn") is None:
        lacking("systemd-nspawn is not installed; see .ci/packages")
    try:
        debian = rootfs()
    except NoRootfs as reason:
        lacking(str(reason))
    return install(debian)


@pytest.fixture(scope="session")
def shared_member(
    layers: list[Path], control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Member]:
    """A machine that was made a node by `fake-kubelet install --join`."""
    place = tmp_path_factory.mktemp("member")
    with Machine("systemd-member", layers, place, api_port=control_plane.layout.apiserver) as machine:
        machine.write("/var/log/journal/.keep", "")  # so that the journal outlives the machine
        machine.boot()
        made = Member(machine, control_plane)
        made.install_and_join()
        yield made
    made.delete_node()


@pytest.fixture
def member(shared_member: Member) -> Iterator[Member]:
    """The machine that all tests share: it is on and a node, and nothing went wrong that nobody thought of."""
    shared_member.machine.wire.set()
    if not shared_member.machine.is_on:
        shared_member.machine.boot()
    shared_member.systemctl("start", "--no-block")
    shared_member.wait_until_ready()
    yield shared_member
    assert "Traceback" not in shared_member.messages()


@pytest.fixture(scope="session")
def fresh(
    layers: list[Path], control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A machine that is no node; tests share it, and each begins with an installation of its own, or with none."""
    place = tmp_path_factory.mktemp("fresh")
    with Machine("systemd-fresh", layers, place, api_port=control_plane.layout.apiserver) as machine:
        machine.boot()
        yield machine
    NodeView(control_plane, machine.name).delete_node()
