"""A node of ours, and what is put there."""

from collections.abc import Callable
from typing import Any

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import MERGE_PATCH, NAMESPACES, STRATEGIC
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually

_BASES = {"Pod": "/api/v1", "Job": "/apis/batch/v1", "CronJob": "/apis/batch/v1"}
_AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}


def create_namespace(plane: ControlPlane, name: str) -> None:
    """Make a namespace, and wait until pods can be created in it."""
    plane.api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    eventually(lambda: plane.get("serviceaccount", "default", name))


def delete_namespace(plane: ControlPlane, name: str) -> None:
    """Ask for its deletion, and for that of the pods in it at once: nobody may be there any more to end them."""
    for pod in plane.api.items(f"{NAMESPACES}/{name}/pods"):
        plane.api.request("DELETE", f"{NAMESPACES}/{name}/pods/{pod['metadata']['name']}", _AT_ONCE)
    plane.api.delete(f"{NAMESPACES}/{name}")


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
        """What kubectl itself does, where that is what a user would do."""
        return self.plane.kubectl("--namespace", self.name, *words, **options)

    def path(self, kind: str, name: str = "") -> str:
        """Where the objects of a kind are, or one of them."""
        objects = f"{_BASES.get(kind, '/apis/apps/v1')}/namespaces/{self.name}/{kind.lower()}s"
        return f"{objects}/{name}" if name else objects

    def create(self, *objects: dict[str, Any]) -> None:
        for one in objects:
            self.api.create(self.path(one["kind"]), one)

    def patch(self, kind: str, name: str, patch: Any, content_type: str = MERGE_PATCH) -> None:
        self.api.patch(self.path(kind, name), patch, content_type)

    def patch_status(self, name: str, status: dict[str, Any], content_type: str = STRATEGIC) -> None:
        """Write to the status of a pod, as whoever has the right to may."""
        self.api.patch(f"{self.path('Pod', name)}/status", {"status": status}, content_type)

    def delete(self, kind: str, *names: str) -> None:
        """Ask for their deletion, and that of what they own, and return at once."""
        for name in names:
            self.api.delete(f"{self.path(kind, name)}?propagationPolicy=Background")

    def delete_pods(self) -> None:
        """Ask for the deletion of all pods, as a collection."""
        self.api.delete(self.path("Pod"))

    def delete_by_force(self, name: str) -> None:
        """Remove a pod from the API, whoever still runs it."""
        self.api.request("DELETE", self.path("Pod", name), _AT_ONCE)

    def wait_until_rolled_out(self, kind: str, name: str) -> None:
        """Until a Deployment, StatefulSet or DaemonSet has all its pods, as it is now, and they are ready."""
        eventually(lambda: _is_rolled_out(self.api.get(self.path(kind, name))), every=0.3)

    def wait_until_finished(self, kind: str, name: str, condition: str) -> None:
        """Until a Job is Complete, or Failed."""

        def has_condition() -> bool:
            found = self.api.get(self.path(kind, name))["status"].get("conditions", [])
            return any(one["type"] == condition and one["status"] == "True" for one in found)

        eventually(has_condition, every=0.3)

    def pod_events(self, reason: str) -> list[str]:
        """The pods that events with this reason are about."""
        found = self.api.items(f"{NAMESPACES}/{self.name}/events?fieldSelector=reason={reason}")
        return [event["involvedObject"]["name"] for event in found]

    def pods(self) -> list[dict[str, Any]]:
        return self.api.items(f"{NAMESPACES}/{self.name}/pods")

    def pod(self, name: str) -> dict[str, Any]:
        return self.plane.get("pod", name, self.name)

    def wait_until_phase(self, name: str, phase: str) -> dict[str, Any]:
        """The pod, once it has this phase."""

        def pod() -> dict[str, Any] | None:
            found = self.pod(name)
            return found if found["status"]["phase"] == phase else None

        return eventually(pod)

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.pods()}

    def wait_until_renewed(self) -> None:
        """Until the node has renewed its Lease once more."""
        before = self.renewed_at()
        eventually(lambda: self.renewed_at() > before)

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


def _is_rolled_out(workload: dict[str, Any]) -> bool:
    """As `kubectl rollout status` sees it."""
    spec, status = workload["spec"], workload.get("status", {})
    if status.get("observedGeneration") != workload["metadata"]["generation"]:
        return False
    if workload["kind"] == "DaemonSet":
        wanted = status["desiredNumberScheduled"]
        return wanted > 0 and wanted == status.get("updatedNumberScheduled") == status.get("numberReady")
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
    return counts == [spec["replicas"]] * len(counts)
