import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually
from tests.faults.member import owners


class Cluster:
    """What a test asks the real cluster about one node."""

    def __init__(self, control_plane: ControlPlane, node_name: str) -> None:
        self._plane = control_plane
        self.name = node_name

    def node(self) -> dict[str, Any]:
        return self._plane.get("node", self.name)

    def lease(self) -> dict[str, Any]:
        return self._plane.get("lease", self.name, "kube-node-lease")

    def owned_lease(self) -> dict[str, Any]:
        """The Lease once it is the Node's: it has a loop of its own, which may be earlier or later than the Node."""

        def owned() -> dict[str, Any] | None:
            lease = self.lease()
            return lease if owners(lease) == [self.node()["metadata"]["uid"]] else None

        return eventually(owned, within=20)

    def ready(self) -> dict[str, Any] | None:
        """The Ready condition while it is True."""
        conditions = {c["type"]: c for c in self.node()["status"].get("conditions", [])}
        return conditions["Ready"] if conditions["Ready"]["status"] == "True" else None

    def wait_until_ready(self) -> dict[str, Any]:
        return eventually(self.ready, within=20)

    def events(self) -> list[dict[str, Any]]:
        selector = f"involvedObject.name={self.name}"
        found = self._plane.kubectl("get", "events", "--field-selector", selector, "--output=json")
        return json.loads(found)["items"]

    def requests(self) -> list[dict[str, Any]]:
        """What the node asked of the API server, from its audit log."""
        lines = self._plane.audit_log.read_text().splitlines()
        user = f"system:node:{self.name}"
        return [request for line in lines if user in line and (request := json.loads(line))["user"]["username"] == user]

    def heartbeats(self) -> list[dict[str, Any]]:
        """The status reports among the requests."""
        return [request for request in self.requests() if request["verb"] == "patch"]


@pytest.fixture
def cluster(control_plane: ControlPlane, node_name: str) -> Iterator[Cluster]:
    """The real cluster, seen as a watcher of this test's node."""
    yield Cluster(control_plane, node_name)
    control_plane.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def start_node(
    control_plane: ControlPlane, node_name: str, start_agent: Callable[..., AgentProcess]
) -> Callable[..., AgentProcess]:
    """Starts fake-kubelet as this test's node, with the node's own certificate."""
    kubeconfig = control_plane.node_kubeconfig(node_name)

    def start(*flags: str, kubeconfig: str = str(kubeconfig)) -> AgentProcess:
        common = ("--hostname-override", node_name, "--healthz-port", "0")
        return start_agent("--kubeconfig", kubeconfig, *common, *flags)

    return start


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
