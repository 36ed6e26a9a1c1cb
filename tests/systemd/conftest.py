import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.lacking import lacking
from tests.systemd.machine import Machine
from tests.systemd.member import Member
from tests.systemd.rootfs import NoRootfs, rootfs
from tests.systemd.wheelhouse import install


@pytest.fixture(scope="session")
def layers(root: None, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A Debian, and our wheel installed in it without a network."""
    if shutil.which("systemd-nspawn") is None:
        lacking("systemd-nspawn is not installed; see .ci/packages")
    try:
        debian = rootfs()
    except NoRootfs as reason:
        lacking(str(reason))
    return install(debian, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def member(
    layers: list[Path], control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Member]:
    """A machine that was made a node by `fake-kubelet install --join`; tests share it, and leave it as it was."""
    place = tmp_path_factory.mktemp("member")
    with Machine("systemd-member", layers, place, api_port=control_plane.layout.apiserver) as machine:
        machine.write("/var/log/journal/.keep", "")  # so that the journal outlives the machine
        machine.boot()
        made = Member(machine, control_plane)
        made.install_and_join()
        yield made
    control_plane.kubectl("delete", "node", machine.name, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def fresh(
    layers: list[Path], control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A machine that is no node yet."""
    place = tmp_path_factory.mktemp("fresh")
    with Machine("systemd-fresh", layers, place, api_port=control_plane.layout.apiserver) as machine:
        machine.boot()
        yield machine
