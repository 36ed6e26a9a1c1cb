"""One node under test: its process, its way to the API server, and what the API server shows of it."""

import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from tests.cluster.agent_process import AgentProcess
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
        self._heard = 0  # characters of the log

    @classmethod
    def started(cls, plane: ControlPlane, name: str, directory: Path, *flags: str, kubeconfig: Path) -> Self:
        """A node with short leases, unless the flags say otherwise, once it is a whole member of the cluster."""
        own = ("--kubeconfig", str(kubeconfig), "--hostname-override", name)
        process = AgentProcess(*own, *BRISK, *flags, log=directory / "fake-kubelet.log")
        process.start()
        member = cls(plane, name, process)
        try:
            member.wait_until_whole()
        except BaseException:
            process.stop()
            raise
        return member

    def is_described(self) -> bool:
        """Whether the Node has what a kubelet gives it when it registers: labels, and a CSINode of its own."""
        node = self.node()["metadata"]
        return owners(self.csinode()) == [node["uid"]] and "kubernetes.io/hostname" in node.get("labels", {})

    def wait_until_whole(self) -> None:
        """Until it is a member; what it logs from now on is news."""
        eventually(self.is_whole)
        self._heard = len(self.process.log_text())

    def news(self) -> str:
        """What the process has logged since it was last waited for."""
        return self.process.log_text()[self._heard :]

    def wait_until_logged(self, *phrases: str, times: int = 1) -> None:
        """Until the news has so many lines with all of the phrases: then a fault has been felt."""

        def found() -> bool:
            lines = [line for line in self.news().splitlines() if all(phrase in line for phrase in phrases)]
            return sum(_count(line) for line in lines) >= times

        eventually(found)

    def wait_until_lease_is_over(self) -> None:
        """Until the cluster would have to give the node up, if it went by the lease alone."""

        def is_over() -> bool:
            lease = self.lease()["spec"]
            lasts = timedelta(seconds=lease["leaseDurationSeconds"])
            return datetime.fromisoformat(lease["renewTime"]) + lasts < datetime.now(UTC)

        eventually(is_over)

    def wait_until_renewed(self, times: int = 1) -> None:
        """Until the lease is renewed from now on, so many times."""
        for _ in range(times):
            moment = datetime.now(UTC)
            eventually(lambda moment=moment: self.renewed_at() > moment)  # type: ignore[misc]

    def wait_until_recovered(self, also: Callable[[], bool] = lambda: True) -> None:
        """Until the lease is renewed from now on, by the same process, on a node that is whole."""
        self.wait_until_renewed()
        eventually(lambda: self.is_whole() and also())
        assert self.process.running

    def stand_still(self) -> None:
        """Keep the process from running at all."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)

    def leave(self) -> None:
        """Stop the process and remove the Node."""
        self.process.stop()
        self.delete_node()


def _count(line: str) -> int:
    """How many lines a line of the log stands for: repeats within a second are one line with a count."""
    count = re.search(r" count=(\d+)$", line)
    return int(count[1]) if count else 1
