from collections.abc import Callable, Iterator

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NODES
from tests.cluster.control_plane import ControlPlane
from tests.pods.home import Home, create_namespace, delete_namespace


@pytest.fixture
def home(control_plane: ControlPlane, node_name: str, start_agent: Callable[..., AgentProcess]) -> Iterator[Home]:
    """A node of this test's own, and a namespace of the same name."""
    create_namespace(control_plane, node_name)
    yield Home(control_plane, node_name, start_agent)
    delete_namespace(control_plane, node_name)
    control_plane.api.delete(f"{NODES}/{node_name}")
