"""Pods as a test needs them, and their lives with time moved by hand."""

from datetime import datetime, timedelta
from typing import Any

from agent.core.patch import status_patch
from agent.core.pods.accessors import container_statuses
from agent.core.pods.events import PodEvent, pod_events
from agent.core.pods.lifecycle import next_status
from agent.core.pods.status import PodContext
from agent.core.pods.termination import KillRequest
from agent.minicluster.patches import strategic_merge
from agent.minicluster.pod_strategy import PODS
from tests.fakes import START

NOW = START.replace(microsecond=0)
NODE = {
    "metadata": {"name": "n1", "labels": {"kubernetes.io/os": "linux", "zone": "a", "size": "5"}},
    "spec": {},
    "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3", "example.com/gpu": "1"}},
}


def pod(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A pod that nobody has looked at yet; fields that a spec has not are those of the metadata."""
    metadata = {"name": "p", "namespace": "ns", "uid": "u1", "resourceVersion": "1", "generation": 1}
    metadata |= {name: fields.pop(name) for name in ("annotations", "labels", "ownerReferences") if name in fields}
    status = fields.pop("status", {"phase": "Pending", "qosClass": "BestEffort"})
    return {"metadata": metadata, "spec": {"containers": list(containers) or [container()], **fields}, "status": status}


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "pause:1", **fields}


class Life:
    """A pod that the node has taken on, and its status as time passes."""

    def __init__(
        self, the_pod: dict[str, Any], *, job_seconds: float = 10.0, understands_commands: bool = True
    ) -> None:
        self.pod, self.now, self._job_seconds = the_pod, NOW, job_seconds
        self._understands_commands = understands_commands
        self.next_at: datetime | None = None
        self.events: list[PodEvent] = []
        self.order: KillRequest | None = None
        self.ips: tuple[str, ...] | None = ("10.0.0.2",)
        self.look()

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.pod["status"]
        return status

    def look(self) -> None:
        """Bring the status up to date, as often as there is something new."""
        while True:
            context = PodContext(
                now=self.now,
                host_ips=("192.0.2.1",),
                pod_ips=self.ips,
                job_seconds=self._job_seconds,
                understands_commands=self._understands_commands,
                kill_request=self.order,
            )
            status, self.next_at = next_status(self.pod, context)
            if (patch := status_patch(self.pod, status)) is None:
                return
            self.events += pod_events(self.pod, status)
            self.pod = strategic_merge(self.pod, patch, PODS.merge_keys)

    def after(self, seconds: float) -> "Life":
        """Let time pass, waking when something is due."""
        end = self.now + timedelta(seconds=seconds)
        while self.next_at and self.next_at <= end:
            self.now = max(self.next_at, self.now)
            self.look()
        self.now = end
        self.look()
        return self

    def delete(self, grace_seconds: int = 30) -> "Life":
        """Ask for the pod's end, as the API server notes it."""
        metadata = self.pod["metadata"]
        metadata["deletionTimestamp"] = (self.now + timedelta(seconds=grace_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata |= {"deletionGracePeriodSeconds": grace_seconds, "generation": metadata["generation"] + 1}
        self.look()
        return self

    def state(self, name: str = "main") -> str:
        """A container in a word: the reason it waits for, running, or the code it ended with."""
        state = self._container(name)["state"]
        if "waiting" in state:
            return str(state["waiting"]["reason"])
        return "running" if "running" in state else f"ended {state['terminated']['exitCode']}"

    def restarts(self, name: str = "main") -> int:
        return int(self._container(name)["restartCount"])

    def condition(self, kind: str) -> dict[str, Any]:
        return next(one for one in self.status["conditions"] if one["type"] == kind)

    def told(self) -> list[str]:
        """The reasons of the events so far, with the container they are about."""
        return [f"{event.reason} {event.path.partition('{')[2].rstrip('}')}".strip() for event in self.events]

    def _container(self, name: str) -> dict[str, Any]:
        return next(one for one in container_statuses(self.status) if one["name"] == name)


def required(*expressions: dict[str, Any]) -> dict[str, Any]:
    """An affinity to nodes that meet all expressions."""
    terms = [{"matchExpressions": list(expressions)}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}
