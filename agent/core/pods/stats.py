"""Pods in stats/v1alpha1: zeros, as a kubelet reports containers for which its runtime has no figures."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from agent.core.model import Object
from agent.core.pods.info import PodInfo
from agent.core.times import timestamp

# kubelet v1.36: cri_stats_provider.go, makeContainerStats
_NO_CPU = {"usageNanoCores": 0, "usageCoreNanoSeconds": 0}
_NO_MEMORY = {"usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0}


def pod_stats(pods: Iterable[PodInfo], at: datetime) -> Iterator[Object]:
    """Yield the stats of each pod that has a running container."""
    time = {"time": timestamp(at)}
    nothing = {"cpu": time | _NO_CPU, "memory": time | _NO_MEMORY}
    for pod in pods:
        if running := [{"name": name, "startTime": since} | nothing for name, since in pod.running]:
            reference = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
            yield {"podRef": reference, "startTime": pod.started_at, "containers": running} | nothing
