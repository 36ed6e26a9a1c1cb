"""fake-kubelet in a container that may do nothing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster.command import CommandFailed, run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.island import ADDRESS, Island
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.node_view import NodeView
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.container.engine import Engine

_STATEFULSET = next(yaml.safe_load_all((Path(__file__).parents[2] / "config/kind/statefulset.yaml").read_text()))
_LIMITS_IN_KIND = _STATEFULSET["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
MEMORY_BYTES = int(_LIMITS_IN_KIND["memory"].removesuffix("Mi")) << 20
_CONNECT = """
import signal, socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = []
for _ in range(count):
    try:
        held.append(socket.create_connection((host, port), timeout=10))
    except OSError:  # refused: that is an answer, too
        pass
print(len(held), flush=True)
signal.pause()
"""
_STRICT = ("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges")
_LIMITS = (f"--memory={MEMORY_BYTES}", "--cpus=0.5", "--pids-limit=50")


class Contained(NodeView):
    """One container with the least of rights: no writable root, no capabilities, little memory."""

    def __init__(self, engine: Engine, image: str, name: str, island: Island, plane: ControlPlane) -> None:
        super().__init__(plane, name)
        self._engine, self._image, self._island = engine, image, island

    def run(self, *words: str) -> None:
        """Start it with these words after `fake-kubelet`."""
        names = (f"--name={self.name}", f"--hostname={self.name}", f"--add-host={self.name}:{ADDRESS}")
        network = f"--network=ns:{self._island.path}"  # of which podman does not know the address
        self._engine.podman("run", "--detach", *names, network, *_LIMITS, *_STRICT, self._image, *words)

    def join_words(self) -> list[str]:
        """The words that make it a node of the cluster."""
        pinned = ("--discovery-token-ca-cert-hash", self.plane.pin)
        return ["join", self.plane.endpoint, "--token", BOOTSTRAP_TOKEN, *pinned]

    def is_healthy(self) -> bool:
        """What the image's own check says."""
        try:
            self._engine.podman("healthcheck", "run", self.name)
        except CommandFailed:
            return False
        return True

    @contextmanager
    def silent_callers(self, count: int, log: Path) -> Iterator[int]:
        """Connect so often to the kubelet's API and say nothing, until the block ends; how many it has accepted."""
        words = [f"--net={self._island.path}", "--", sys.executable, "-c", _CONNECT, ADDRESS, "10250", str(count)]
        callers = Process("callers", ["nsenter", *words], log=log)
        callers.start()
        try:
            yield int(eventually(callers.log_text))
        finally:
            callers.kill()

    def starts(self) -> tuple[bool, int]:
        """Whether it runs, and how often its process was started anew."""
        told = self._engine.podman("inspect", self.name, "--format", "{{.State.Running}} {{.RestartCount}}").split()
        return told[0] == "true", int(told[1])

    def peak_bytes(self) -> int:
        """The most memory that it has had so far."""
        group = self._engine.podman("inspect", self.name, "--format", "{{.State.CgroupPath}}")
        files = (f"memory{group}/memory.max_usage_in_bytes", f"{group.lstrip('/')}/memory.peak")
        return next(int(path.read_text()) for file in files if (path := Path("/sys/fs/cgroup", file)).exists())

    def stop(self) -> tuple[int, float]:
        """Its exit code after SIGTERM, 137 if it had to be killed, and after how many seconds."""
        began = time.monotonic()
        self._engine.podman("stop", "--time=120", self.name, timeout=240)
        took_seconds = time.monotonic() - began
        return int(self._engine.podman("inspect", self.name, "--format", "{{.State.ExitCode}}")), took_seconds

    def start_again(self) -> None:
        """Start the stopped container, with its volume."""
        self._engine.podman("start", self.name)

    def log_text(self) -> str:
        """What it has said."""
        return run(["sh", "-c", f"podman logs {self.name} 2>&1"], env=self._engine.environment, check=False)

    def remove(self) -> None:
        """Leave nothing of it behind, neither here nor in the cluster."""
        self._engine.podman("rm", "--force", "--time=2", "--volumes", self.name, check=False)
        self.delete_node()
