"""One node under test, as the cluster sees it."""

import http.client
import json
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

_NODES = "/api/v1/nodes"
_CSINODES = "/apis/storage.k8s.io/v1/csinodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Refused(Exception):
    """The API server said no."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code


class Admin:
    """The administrator, without kubectl's start-up time."""

    def __init__(self, plane: ControlPlane) -> None:
        self._port = plane.layout.apiserver
        self._tls = ssl.create_default_context(cafile=plane.ca_file)
        self._tls.load_cert_chain(plane.admin_cert, plane.admin_key)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> dict[str, Any]:
        """One request on a connection of its own: the server may have been restarted since the last one."""
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=10)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": content_type})
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 300:
            raise Refused(response.status, answer.get("message", ""))
        return answer


class Member:
    """A node, its process and what the API server shows of it."""

    def __init__(self, admin: Admin, name: str, process: Process) -> None:
        self.admin, self.name, self.process = admin, name, process

    def node(self) -> dict[str, Any]:
        return self.admin.ask("GET", f"{_NODES}/{self.name}")

    def lease(self) -> dict[str, Any]:
        return self.admin.ask("GET", f"{LEASES}/{self.name}")

    def delete_node(self) -> None:
        self.admin.ask("DELETE", f"{_NODES}/{self.name}")

    def create_node(self) -> dict[str, Any]:
        return self.admin.ask("POST", _NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}})

    def delete_lease(self) -> None:
        self.admin.ask("DELETE", f"{LEASES}/{self.name}")

    def patch_lease(self, patch: dict[str, Any]) -> None:
        self.admin.ask("PATCH", f"{LEASES}/{self.name}", patch, "application/merge-patch+json")

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition of the Node; nothing where it has none."""
        conditions: list[dict[str, Any]] = self.node()["status"].get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def is_ready(self) -> bool:
        return self.condition("Ready").get("status") == "True"

    def is_whole(self) -> bool:
        """Whether Node and Lease belong together and the node is Ready."""
        return owners(self.lease()) == [self.node()["metadata"]["uid"]] and self.is_ready()

    def is_described(self) -> bool:
        """Whether the Node has what a kubelet gives it when it registers: labels, and a CSINode of its own."""
        node, csinode = self.node()["metadata"], self.admin.ask("GET", f"{_CSINODES}/{self.name}")
        return owners(csinode) == [node["uid"]] and "kubernetes.io/hostname" in node.get("labels", {})

    def renewed_at(self) -> datetime:
        return datetime.fromisoformat(self.lease()["spec"]["renewTime"])

    def seconds_to_recover(self, within: float = 10.4, also: Callable[[], bool] = lambda: True) -> float:
        """From now to the first renewal that is newer than now, on a node that is whole."""
        began, moment = time.monotonic(), datetime.now(UTC)
        eventually(lambda: self.renewed_at() > moment and also(), within=within, every=0.05)
        took = time.monotonic() - began
        eventually(self.is_whole, within=15)
        assert self.process.running, self.process.log_text()[-2000:]
        return took


def owners(obj: dict[str, Any]) -> list[str]:
    """The UIDs of whom an object belongs to."""
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences", [])]


def through(port: int, kubeconfig: Path, target: Path, **user: Any) -> Path:
    """A copy of a kubeconfig that leads through a proxy, perhaps as another user."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    if user:
        document["users"][0]["user"] = user
    target.write_text(yaml.safe_dump(document))
    target.chmod(0o600)
    return target
