"""fake-kubelet in a container that may do nothing."""

import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from agent.core.x509 import read_certificates
from tests.cluster.command import CommandFailed, run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.island import ADDRESS, Island
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.waiting import eventually
from tests.container.engine import Engine

_STATEFULSET = next(yaml.safe_load_all((Path(__file__).parents[2] / "config/kind/statefulset.yaml").read_text()))
_LIMITS_IN_KIND = _STATEFULSET["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
MEMORY_BYTES = int(_LIMITS_IN_KIND["memory"].removesuffix("Mi")) << 20
_CONNECT = """
import socket, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
held = []
for _ in range(count):
    try:
        held.append(socket.create_connection((host, port), timeout=10))
    except OSError:  # refused: that is an answer, too
        pass
time.sleep(2)
print(len(held))
"""
_STRICT = ("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges")
_LIMITS = (f"--memory={MEMORY_BYTES}", "--cpus=0.5", "--pids-limit=50")


class Contained:
    """One container with the least of rights: no writable root, no capabilities, little memory."""

    def __init__(self, engine: Engine, image: str, name: str, island: Island, plane: ControlPlane) -> None:
        self.name, self._engine, self._image, self._island, self._plane = name, engine, image, island, plane

    def run(self, *words: str) -> None:
        """Start it with these words after `fake-kubelet`."""
        names = (f"--name={self.name}", f"--hostname={self.name}", f"--add-host={self.name}:{ADDRESS}")
        network = f"--network=ns:{self._island.path}"  # of which podman does not know the address
        self._engine.podman("run", "--detach", *names, network, *_LIMITS, *_STRICT, self._image, *words)

    def join_words(self) -> list[str]:
        """The words that make it a node of the cluster."""
        authority = read_certificates(self._plane.ca_file.read_text())[0]
        pin = f"sha256:{hashlib.sha256(authority.public_key).hexdigest()}"
        server = self._plane.url.removeprefix("https://")
        return ["join", server, "--token", BOOTSTRAP_TOKEN, "--discovery-token-ca-cert-hash", pin]

    def wait_until_ready(self) -> dict[str, Any]:
        """Its Node, once that is Ready."""
        try:
            return eventually(self._ready_node, within=60)
        except AssertionError as error:
            raise AssertionError(f"{error}; it said:\n{self.log_text()}") from error

    def is_healthy(self) -> bool:
        """What the image's own check says."""
        try:
            self._engine.podman("healthcheck", "run", self.name)
        except CommandFailed:
            return False
        return True

    def connect(self, count: int) -> int:
        """Open so many connections to the kubelet's API, say nothing, and leave; how many it accepted."""
        words = [f"--net={self._island.path}", "--", sys.executable, "-c", _CONNECT, ADDRESS, "10250", str(count)]
        return int(run(["nsenter", *words], timeout=120))

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
        """Its exit code after SIGTERM, and after how many seconds."""
        began = time.monotonic()
        self._engine.podman("stop", "--time=20", self.name)
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
        self._plane.kubectl("delete", "node", self.name, "--ignore-not-found", "--wait=false")

    def _ready_node(self) -> dict[str, Any] | None:
        node = self._plane.get("node", self.name)
        conditions = node["status"].get("conditions", [])
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        return node if ready else None
