"""A kind cluster in podman, in a network of its own, with its images from our own store."""

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.cluster import build
from tests.cluster.command import run
from tests.cluster.kept import locked
from tests.cluster.real_kubelet import TUNABLES
from tests.container.debian import cache
from tests.container.engine import Engine
from tests.kind.node_image import KIND, images, node_image

_CONFIG = KIND.folder / "kind.yaml"
_MODULES = Path("/lib/modules")
# What the systemd of a node changes for the whole machine, beside what its kubelet does.
_OF_SYSTEMD = [
    Path("/proc/sys/fs") / name
    for name in (
        "file-max",
        "nr_open",
        "protected_fifos",
        "protected_hardlinks",
        "protected_regular",
        "protected_symlinks",
    )
]


class KindCluster:
    """One real node, made by kind; whatever it changes of the machine is put back at the end."""

    def __init__(self, engine: Engine, binaries: Path, directory: Path) -> None:
        self.name = f"fk-{secrets.token_hex(3)}"
        self.control_plane = f"{self.name}-control-plane"
        self._engine, self._binaries, self._directory = engine, binaries, directory
        self._life = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as life:
            # One at a time: kind's network has one name, and so has our image in the manifests.
            life.enter_context(locked(cache() / "kind.lock"))
            self._isolate(life)
            image = node_image(self._engine, self._binaries)
            life.callback(self._delete)
            self.kind("create", "cluster", "--image", image, "--config", str(_CONFIG), "--wait=90s", timeout=240)
            self._life = life.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._life.close()

    @property
    def environment(self) -> dict[str, str]:
        """For whoever calls kind, podman or kubectl: they are ours, and so is the cluster."""
        return self._engine.environment | {
            "PATH": f"{self._binaries}:{os.environ['PATH']}",
            "KIND_EXPERIMENTAL_PROVIDER": "podman",
            "KUBECONFIG": str(self._directory / "kubeconfig"),
            "KUBECACHEDIR": str(self._directory / "kubectl-cache"),
        }

    @property
    def pause_image(self) -> str:
        """An image that the node is sure to have."""
        return dict(images(self._binaries))["pause"]

    def run(self, *argv: str, check: bool = True, timeout: float = 60.0) -> str:
        """What a command prints that is run beside the cluster."""
        words = ["nsenter", f"--net={self._network}", "--", *argv]
        return run(words, env=self.environment, check=check, timeout=timeout).strip()

    def kind(self, *words: str, timeout: float = 60.0) -> str:
        """What kind prints."""
        return self.run(str(build.built(KIND) / "kind"), *words, "--name", self.name, timeout=timeout)

    def kubectl(self, *words: str, check: bool = True, timeout: float = 60.0) -> str:
        """What kubectl prints for the administrator."""
        return self.run("kubectl", *words, check=check, timeout=timeout)

    def get(self, *words: str) -> Any:
        """What `kubectl get` finds."""
        return json.loads(self.kubectl("get", *words, "--output=json"))

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Have these objects made."""
        path = self._directory / "objects.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        self.kubectl("apply", "--filename", str(path))

    def load(self, image: str) -> None:
        """Bring an image of the store to the node."""
        archive = self._directory / "image.tar"
        self._engine.podman("save", "--quiet", "--format=docker-archive", "--output", str(archive), image, timeout=120)
        self.kind("load", "image-archive", str(archive), timeout=120)
        archive.unlink()

    def serve_the_api_to_pods(self) -> None:
        """Do what kube-proxy would for the one Service there is."""
        service = self.get("service", "kubernetes")["spec"]["clusterIP"]
        node = self.get("node", self.control_plane)["status"]["addresses"][0]["address"]
        rule = f"-p tcp -d {service} --dport 443 -j DNAT --to-destination {node}:6443"
        self.run("podman", "exec", self.control_plane, "iptables", "-t", "nat", "-A", "PREROUTING", *rule.split())

    @property
    def _network(self) -> Path:
        return Path("/run/netns") / self.name

    def _isolate(self, life: ExitStack) -> None:
        """A network namespace for bridge, firewall and DNS, and the kernel's settings as they were."""
        run(["ip", "netns", "add", self.name])
        life.callback(lambda: run(["ip", "netns", "delete", self.name], check=False))
        run(["ip", "-n", self.name, "link", "set", "lo", "up"])
        if not _MODULES.exists():  # kind mounts it into its nodes, even where the kernel has none
            _MODULES.mkdir()
            life.callback(_MODULES.rmdir)
        for path in (*TUNABLES, *_OF_SYSTEMD):
            life.callback(path.write_text, path.read_text())

    def _delete(self) -> None:
        self.kind("delete", "cluster", timeout=120)
        self.run("podman", "network", "rm", "--force", "kind", check=False)
