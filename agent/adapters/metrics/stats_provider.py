"""What of the machine is in use, as /stats/summary, /metrics/resource and /metrics/cadvisor serve it."""

from collections.abc import Callable, Iterator, Sequence

from agent.adapters.metrics.exposition import exposition
from agent.core.metrics import Family, Sample
from agent.core.model import Object
from agent.core.pods.info import PodInfo, pod_stats
from agent.core.usage import Detail, HostUsage
from agent.ports import Host

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


class StatsProvider:
    """Reads the machine with each request, and imports what formats the answer with the first."""

    def __init__(self, *, host: Host, node_name: str, pods: Callable[[], Sequence[PodInfo]] = tuple) -> None:
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
        return resource_metrics(await self._host.usage(Detail.COUNTERS))

    async def cadvisor(self) -> bytes:
        """Return /metrics/cadvisor."""
        from agent.adapters.metrics.cadvisor_metrics import cadvisor_metrics  # noqa: PLC0415

        return cadvisor_metrics(await self._host.usage(Detail.MOUNTS))


def resource_metrics(usage: HostUsage) -> bytes:
    """Return what metrics-server reads: the node's usage, with the time at which it was measured.

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
    return exposition([*families, Family(*_ERROR, [Sample("", {}, float(failed))])])
