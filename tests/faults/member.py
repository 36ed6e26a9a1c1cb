"""One node under test: its process, and what the API server shows of it."""

from collections.abc import Callable
from datetime import UTC, datetime

from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView, owners
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

# Four renewals a lease, as ever; the lease is short so that a fault of seconds is as long as one of a minute.
BRISK = ("--node-lease-duration-seconds=4", "--node-status-update-frequency=1s", "--healthz-port=0")


class Member(NodeView):
    """A node of ours."""

    def __init__(self, plane: ControlPlane, name: str, process: Process) -> None:
        super().__init__(plane, name)
        self.process = process

    def is_described(self) -> bool:
        """Whether the Node has what a kubelet gives it when it registers: labels, and a CSINode of its own."""
        node = self.node()["metadata"]
        return owners(self.csinode()) == [node["uid"]] and "kubernetes.io/hostname" in node.get("labels", {})

    def wait_until_recovered(self, also: Callable[[], bool] = lambda: True) -> None:
        """Until the lease is renewed from now on, by the same process, on a node that is whole."""
        moment = datetime.now(UTC)
        eventually(lambda: self.renewed_at() > moment and also())
        eventually(self.is_whole)
        assert self.process.running, self.process.log_text()[-2000:]
