"""The page at /metrics/resource, which metrics-server reads: what the node uses, with the moment it was measured."""

from agent.adapters.metrics.exposition import exposition
from agent.core.metrics import Family, Sample
from agent.core.usage import HostUsage

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


def resource_page(usage: HostUsage) -> bytes:
    """The page; it says so itself where something could not be read."""
    at_seconds = usage.at.timestamp()
    families = []
    if usage.root.cpu:
        families.append(Family(*_CPU, [Sample("", {}, usage.root.cpu.total_ns / 1e9, at_seconds)]))
    if usage.root.memory:
        families.append(Family(*_MEMORY, [Sample("", {}, usage.root.memory.working_set_bytes, at_seconds)]))
        families.append(Family(*_SWAP, [Sample("", {}, usage.root.memory.swap_bytes, at_seconds)]))
    failed = usage.root.cpu is None or usage.root.memory is None
    return exposition([*families, Family(*_ERROR, [Sample("", {}, float(failed))])])
