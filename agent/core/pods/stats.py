"""What pods use in stats/v1alpha1: zeros, as a kubelet tells of containers that its runtime has no figures of."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from agent.core.facts import timestamp
from agent.core.model import Object
from agent.core.pods.parts import container_statuses

# kubelet v1.36: cri_stats_provider.go, makeContainerStats
_NO_CPU = {"usageNanoCores": 0, "usageCoreNanoSeconds": 0}
_NO_MEMORY = {"usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0}


def pod_stats(pods: Sequence[Object], at: datetime) -> Iterator[Object]:
    """Each pod that has a container running, and these containers."""
    time = {"time": timestamp(at)}
    nothing = {"cpu": time | _NO_CPU, "memory": time | _NO_MEMORY}
    for pod in pods:
        if running := [{"name": name, "startTime": since} | nothing for name, since in _running(pod)]:
            reference = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
            began = pod["status"].get("startTime")
            yield {"podRef": reference, "startTime": began, "containers": running} | nothing


def _running(pod: Object) -> Iterator[tuple[str, str | None]]:
    for container in container_statuses(pod.get("status", {})):
        if running := container.get("state", {}).get("running"):
            yield container["name"], running.get("startedAt")
