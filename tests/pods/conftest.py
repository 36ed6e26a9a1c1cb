import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually


class Home:
    """A node of ours on the real cluster, and a namespace for what is put there."""

    def __init__(self, plane: ControlPlane, name: str, start: Callable[..., AgentProcess]) -> None:
        self.plane, self.name, self._start = plane, name, start

    def start(self, *flags: str) -> AgentProcess:
        """Bring fake-kubelet up, and wait until the node is ready for pods."""
        agent = self.run(*flags)
        self.kubectl("wait", "--for=create", f"node/{self.name}", "--timeout=30s")
        self.kubectl("wait", "--for=condition=Ready", f"node/{self.name}", "--timeout=30s")
        return agent

    def run(self, *flags: str) -> AgentProcess:
        """Bring fake-kubelet up."""
        kubeconfig = self.plane.node_kubeconfig(self.name)
        common = (f"--kubeconfig={kubeconfig}", f"--hostname-override={self.name}", "--enable-server=false")
        return self._start(*common, "--healthz-port=0", *flags)

    def kubectl(self, *words: str, **options: Any) -> str:
        return self.plane.kubectl("--namespace", self.name, *words, **options)

    def apply(self, *objects: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", input=json.dumps(items))

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", "pods", "--output=json"))["items"]
        return found

    def pod(self, name: str) -> dict[str, Any]:
        return self.plane.get("pod", name, self.name)

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.pods()}

    def wait_until_empty(self, within: float = 30.0) -> None:
        eventually(lambda: not self.pods(), within=within, every=0.3)

    def wait_until_running(self, count: int, within: float = 40.0) -> None:
        """Until so many run; one that was judged by what the node was a moment ago may have failed beside them."""
        eventually(lambda: list(self.phases().values()).count("Running") == count, within=within, every=0.3)

    def bare_pod(self, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
        """A pod that is bound to this node already."""
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"nodeName": self.name, "containers": [{"name": "main", "image": "pause:1"}], **spec},
        }

    def workload(self, kind: str, name: str, *, annotations: dict[str, str] | None = None, **fields: Any) -> Any:
        """A Deployment, StatefulSet or DaemonSet whose pods come to this node."""
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": self.name},
            "containers": [{"name": "main", "image": "pause:1"}],
            "tolerations": fields.pop("tolerations", []),
        }
        template = {"metadata": {"labels": {"app": name}, "annotations": annotations or {}}, "spec": spec}
        selector = {"matchLabels": {"app": name}}
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"selector": selector, "template": template, **fields},
        }

    def job(self, name: str, annotations: dict[str, str], **fields: Any) -> Any:
        """A Job whose pods come to this node."""
        spec = {**self.workload("", name)["spec"]["template"]["spec"], "restartPolicy": "Never"}
        template = {"metadata": {"annotations": annotations}, "spec": spec}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"template": template, **fields},
        }

    def requests(self) -> list[dict[str, Any]]:
        """What the node asked of the API server, from its audit log."""
        user = f"system:node:{self.name}"
        lines = self.plane.audit_log.read_text().splitlines()
        return [request for line in lines if user in line and (request := json.loads(line))["user"]["username"] == user]


@pytest.fixture
def home(control_plane: ControlPlane, node_name: str, start_agent: Callable[..., AgentProcess]) -> Iterator[Home]:
    """A node of this test's own, and a namespace of the same name."""
    control_plane.kubectl("create", "namespace", node_name)
    eventually(lambda: control_plane.get("serviceaccount", "default", node_name), within=20)
    yield Home(control_plane, node_name, start_agent)
    control_plane.kubectl("delete", "namespace", node_name, "--wait=false")
    control_plane.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")
