"""A node of ours, and what is put there."""

import json
from collections.abc import Callable
from typing import Any

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NAMESPACES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually


class Home(NodeView):
    """A node of ours on the real cluster, and a namespace for what is put there."""

    def __init__(self, plane: ControlPlane, name: str, start: Callable[..., AgentProcess]) -> None:
        super().__init__(plane, name)
        self._start = start

    def start(self, *flags: str) -> AgentProcess:
        """Bring fake-kubelet up, and wait until the node is ready for pods."""
        agent = self.run(*flags)
        self.wait_until_ready()
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
        return self.api.items(f"{NAMESPACES}/{self.name}/pods")

    def pod(self, name: str) -> dict[str, Any]:
        return self.plane.get("pod", name, self.name)

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.pods()}

    def wait_until_empty(self) -> None:
        eventually(lambda: not self.pods(), every=0.3)

    def wait_until_running(self, count: int) -> None:
        """Until so many run; one that was judged by what the node was a moment ago may have failed beside them."""
        eventually(lambda: list(self.phases().values()).count("Running") == count, every=0.3)

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
