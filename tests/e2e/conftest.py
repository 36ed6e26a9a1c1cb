from collections.abc import Callable, Iterator

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView
from tests.cluster.ports import free_ports


@pytest.fixture
def cluster(control_plane: ControlPlane, node_name: str) -> Iterator[NodeView]:
    """The real cluster, seen as a watcher of this test's node."""
    view = NodeView(control_plane, node_name)
    yield view
    view.delete_node()


@pytest.fixture
def start_node(
    control_plane: ControlPlane, cluster: NodeView, start_agent: Callable[..., AgentProcess]
) -> Callable[..., AgentProcess]:
    """Starts fake-kubelet as this test's node, with the node's own certificate; it ends before the Node does."""
    node_name = cluster.name
    kubeconfig = control_plane.node_kubeconfig(node_name)

    def start(*flags: str, kubeconfig: str = str(kubeconfig)) -> AgentProcess:
        common = ("--hostname-override", node_name, "--healthz-port", "0")
        return start_agent("--kubeconfig", kubeconfig, *common, *flags)

    return start


@pytest.fixture
def free_port() -> int:
    return free_ports(1)[0]
