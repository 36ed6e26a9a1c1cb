"""The two programs under comparison, behind the same verbs."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.real_kubelet import RealKubelet


class Subject(Protocol):
    """One node and the process that keeps it."""

    node_name: str
    process: Process

    def prepare(self) -> None:
        """Do everything that is not to be measured."""

    def start(self) -> None:
        """Execute the program."""

    def stop(self) -> int | None:
        """End it."""


class FakeKubelet:
    """fake-kubelet as a subject."""

    def __init__(self, cluster: ControlPlane, node_name: str, directory: Path) -> None:
        self.node_name = node_name
        self._cluster, self._directory = cluster, directory
        self.process: Process = AgentProcess(log=directory / "fake-kubelet.log")

    def prepare(self) -> None:
        """Write its kubeconfig and choose its port."""
        root_dir = self._directory / "root"
        root_dir.mkdir(parents=True)
        self.process = AgentProcess(
            f"--kubeconfig={self._cluster.node_kubeconfig(self.node_name)}",
            f"--hostname-override={self.node_name}",
            f"--root-dir={root_dir}",
            f"--healthz-port={free_ports(1)[0]}",
            log=self.process.log,
        )

    def start(self) -> None:
        """Execute it."""
        self.process.start()

    def stop(self) -> int | None:
        """End it."""
        return self.process.stop()


SUBJECTS: dict[str, Callable[[ControlPlane, str, Path], Subject]] = {
    "kubelet": RealKubelet,
    "fake-kubelet": FakeKubelet,
}
