from collections.abc import Callable, Iterator

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually
from tests.pods.home import Home


@pytest.fixture
def home(control_plane: ControlPlane, node_name: str, start_agent: Callable[..., AgentProcess]) -> Iterator[Home]:
    """A node of this test's own, and a namespace of the same name."""
    control_plane.kubectl("create", "namespace", node_name)
    eventually(lambda: control_plane.get("serviceaccount", "default", node_name), within=20)
    yield Home(control_plane, node_name, start_agent)
    control_plane.kubectl("delete", "namespace", node_name, "--wait=false")
    control_plane.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")
