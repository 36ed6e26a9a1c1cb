"""What of the machine is in use, as /stats/summary, /metrics/resource and /metrics/cadvisor serve it."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from agent.adapters.metrics.exposition import exposition, format_labels
from agent.core.metrics import Family, Sample
from agent.core.model import Object
from agent.core.pods.info import PodInfo
from agent.core.pods.stats import pod_figures, pod_stats
from agent.core.times import parse_time
from agent.core.usage import Detail, HostUsage
from agent.ports import UsageSource

# kubelet v1.36: metrics/collectors/resource_metrics.go
_CPU = ("node_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the node in core-seconds", "counter")
_MEMORY = ("node_memory_working_set_bytes", "[STABLE] Current working set of the node in bytes", "gauge")
_SWAP = (
    "node_swap_usage_bytes",
    "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems",
    "gauge",
)
_ERROR = (
    "resource_scrape_error",
    "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
    "gauge",
)
_OF_CONTAINER = (
    (
        "container_cpu_usage_seconds_total",
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
        "counter",
    ),
    ("container_memory_working_set_bytes", "[STABLE] Current working set of the container in bytes", "gauge"),
    (
        "container_swap_usage_bytes",
        "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems",
        "gauge",
    ),
    ("container_start_time_seconds", "[STABLE] Start time of the container since unix epoch in seconds", "gauge"),
)
_OF_POD = (
    ("pod_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds", "counter"),
    ("pod_memory_working_set_bytes", "[STABLE] Current working set of the pod in bytes", "gauge"),
    (
        "pod_swap_usage_bytes",
        "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
        "gauge",
    ),
)


class StatsProvider:
    """Reads the machine with each request, and imports what formats the answer with the first."""

    def __init__(self, *, host: UsageSource, node_name: str, pods: Callable[[], Sequence[PodInfo]] = tuple) -> None:
        self._host = host
        self._node_name = node_name
        self._pods = pods

    async def summary(self, only_cpu_and_memory: bool) -> tuple[Object, Iterator[Object]]:
        """Return /stats/summary without its pods, of which there may be many, and an iterator of these."""
        from agent.core.summary import node_summary  # noqa: PLC0415

        usage = await self._host.usage(Detail.COUNTERS if only_cpu_and_memory else Detail.NODE)
        node = node_summary(usage, node_name=self._node_name, only_cpu_and_memory=only_cpu_and_memory)
        return node, pod_stats(self._pods(), usage.at)

    async def resource(self) -> bytes:
        """Return /metrics/resource."""
        return resource_metrics(await self._host.usage(Detail.COUNTERS), self._pods())

    async def cadvisor(self) -> bytes:
        """Return /metrics/cadvisor."""
        from agent.adapters.metrics.cadvisor_metrics import cadvisor_metrics  # noqa: PLC0415

        return cadvisor_metrics(await self._host.usage(Detail.MOUNTS), self._pods())


def resource_metrics(usage: HostUsage, pods: Sequence[PodInfo] = ()) -> bytes:
    """Return what metrics-server reads: usage of the node and its pods, with the time at which it was measured.

    resource_scrape_error is 1 where something could not be read.
    """
    at_seconds = usage.at.timestamp()
    families = []
    if usage.root.cpu:
        families.append(Family(*_CPU, [Sample("", {}, usage.root.cpu.total_ns / 1e9, at_seconds)]))
    if usage.root.memory:
        families.append(Family(*_MEMORY, [Sample("", {}, usage.root.memory.working_set_bytes, at_seconds)]))
        families.append(Family(*_SWAP, [Sample("", {}, usage.root.memory.swap_bytes, at_seconds)]))
    failed = usage.root.cpu is None or usage.root.memory is None
    return exposition([*families, *_pods(pods, usage.at), Family(*_ERROR, [Sample("", {}, float(failed))])])


def _pods(pods: Sequence[PodInfo], at: datetime) -> list[Family]:
    """Return the usage of each container that runs, and of its pod."""
    families = [Family(*description, []) for description in (*_OF_CONTAINER, *_OF_POD)]
    cpu, memory, swap, start, pod_cpu, pod_memory, pod_swap = (family.samples for family in families)
    at_seconds = at.timestamp()
    for pod, containers, total in pod_figures(pods, at):
        shared = (("namespace", pod.namespace), ("pod", pod.name))
        for container, figures in containers:
            labels = format_labels((("container", container.name), *shared))
            cpu.append(Sample("", labels, figures.cpu_nanoseconds / 1e9, at_seconds))
            memory.append(Sample("", labels, figures.memory_bytes, at_seconds))
            swap.append(Sample("", labels, 0, at_seconds))
            if container.started_at:
                start.append(Sample("", labels, parse_time(container.started_at).timestamp()))
        labels = format_labels(shared)
        pod_cpu.append(Sample("", labels, total.cpu_nanoseconds / 1e9, at_seconds))
        pod_memory.append(Sample("", labels, total.memory_bytes, at_seconds))
        pod_swap.append(Sample("", labels, 0, at_seconds))
    return families
