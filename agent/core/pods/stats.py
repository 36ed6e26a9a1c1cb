"""What pods use in stats/v1alpha1: zeros, as a kubelet tells of containers that its runtime has no figures of."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from agent.core.facts import timestamp
from agent.core.model import Object
from agent.core.pods.parts import container_statuses

# kubelet v1.36: cri_stats_provider.go, makeContainerStats
_NO_CPU = {"usageNanoCores": 0, "usageCoreNanoSeconds": 0}
_NO_MEMORY = {"usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0}


class PodInfo(NamedTuple):
    """What metrics and figures need of a pod: a pod may have 1.5 MB, and nobody decodes that for a scrape."""

    namespace: str
    name: str
    uid: str
    phase: str
    started_at: str | None
    running: tuple[tuple[str, str | None], ...]  # the containers that run, and since when
    states: Mapping[str, int]  # running, waiting or terminated → how many of its main containers


def pod_info(pod: Object) -> PodInfo:
    """Read it from the whole object."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    states = Counter(state for main in status.get("containerStatuses") or () for state in main.get("state") or ())
    return PodInfo(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        phase=status.get("phase") or "",
        started_at=status.get("startTime"),
        running=tuple(_running(status)),
        states=dict(states),
    )


def pod_stats(pods: Iterable[PodInfo], at: datetime) -> Iterator[Object]:
    """Each pod that has a container running, and these containers."""
    time = {"time": timestamp(at)}
    nothing = {"cpu": time | _NO_CPU, "memory": time | _NO_MEMORY}
    for pod in pods:
        if running := [{"name": name, "startTime": since} | nothing for name, since in pod.running]:
            reference = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
            yield {"podRef": reference, "startTime": pod.started_at, "containers": running} | nothing


def _running(status: Object) -> Iterator[tuple[str, str | None]]:
    for container in container_statuses(status):
        if running := (container.get("state") or {}).get("running"):
            yield container["name"], running.get("startedAt")
