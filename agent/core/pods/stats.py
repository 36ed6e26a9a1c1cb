"""What running containers use at one moment, as /stats/summary, /metrics/resource and /metrics/cadvisor show it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods.info import PodInfo, RunningContainer
from agent.core.times import EARLIEST, parse_time, timestamp

_NANO = 10**9


class Figures(NamedTuple):
    """CPU and memory of a container or a pod."""

    nanocores: int
    cpu_nanoseconds: int  # since the container's start; it never falls
    memory_bytes: int

    def plus(self, other: "Figures") -> "Figures":
        """Return the sum of both."""
        return Figures(*map(sum, zip(self, other, strict=True)))


NO_FIGURES = Figures(0, 0, 0)


class PodFigures(NamedTuple):
    """A pod with a running container, and what it uses."""

    pod: PodInfo
    containers: Sequence[tuple[RunningContainer, Figures]]
    total: Figures


def pod_figures(pods: Iterable[PodInfo], at: datetime) -> Iterator[PodFigures]:
    """Yield each pod with a running container; the shapes of usage begin with the pod."""
    now_ms = _milliseconds(at)
    for pod in pods:
        if not pod.running:
            continue
        pod_ms = _milliseconds(parse_time(pod.started_at)) if pod.started_at else now_ms
        containers = [(container, _figures(container, pod_ms, now_ms)) for container in pod.running]
        total = containers[0][1]
        for _, figures in containers[1:]:
            total = total.plus(figures)
        yield PodFigures(pod, containers, total)


def pod_stats(pods: Iterable[PodInfo], at: datetime) -> Iterator[Object]:
    """Yield the stats/v1alpha1 of each pod with a running container."""
    time = timestamp(at)
    for pod, containers, total in pod_figures(pods, at):
        yield {
            "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "startTime": pod.started_at,
            "containers": [
                {"name": container.name, "startTime": container.started_at, **_stats(figures, time)}
                for container, figures in containers
            ],
            **_stats(total, time),
        }


def _figures(container: RunningContainer, pod_ms: int, now_ms: int) -> Figures:
    usage = container.usage
    if usage is None or container.started_at is None:
        return NO_FIGURES
    began_ms = _milliseconds(parse_time(container.started_at))
    cpu_nanoseconds = usage.cpu.sum_until(now_ms - pod_ms) - usage.cpu.sum_until(began_ms - pod_ms)
    return Figures(
        nanocores=usage.cpu.at(now_ms - pod_ms),
        cpu_nanoseconds=max(0, cpu_nanoseconds),
        memory_bytes=usage.memory.at(now_ms - pod_ms) // _NANO,
    )


def _stats(figures: Figures, time: str) -> Object:
    # kubelet v1.36: cri_stats_provider.go, makeContainerStats
    size = figures.memory_bytes
    return {
        "cpu": {
            "time": time,
            "usageNanoCores": figures.nanocores,
            "usageCoreNanoSeconds": figures.cpu_nanoseconds,
        },
        "memory": {"time": time, "usageBytes": size, "workingSetBytes": size, "rssBytes": size},
    }


def _milliseconds(moment: datetime) -> int:
    elapsed = moment - EARLIEST
    return (elapsed.days * 86400 + elapsed.seconds) * 1000 + elapsed.microseconds // 1000
