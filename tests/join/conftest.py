from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.machine import Machine, make_unapproved_token
from tests.join.account import apply


@pytest.fixture(scope="session")
def rbac(control_plane: ControlPlane) -> ControlPlane:
    """The cluster that all tests share, with config/rbac applied."""
    apply(control_plane)
    return control_plane


@pytest.fixture
def machine(control_plane: ControlPlane, node_name: str, tmp_path: Path) -> Iterator[Machine]:
    """A machine with a bootstrap token, on the cluster that all tests share."""
    made = Machine(control_plane, node_name, tmp_path)
    made.give_token()
    yield made
    made.stop()


@pytest.fixture
def unapproved_machine(machine: Machine) -> Machine:
    """A machine whose requests wait for a person."""
    machine.give_token(make_unapproved_token(machine.plane))
    return machine
