"""The memory that the machine uses, as cAdvisor counts it: that of the root cgroup."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.counters import pressure, stalls
from agent.adapters.host.files import HostFiles
from agent.core.usage import MemoryUsage

_MEMINFO = ("MemTotal", "MemFree", "MemAvailable", "AnonPages", "Cached", "Mapped", "SwapTotal", "SwapFree")
_V1, _V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
_V1_STAT = {
    "rss_bytes": "total_rss",
    "cache_bytes": "total_cache",
    "mapped_file_bytes": "total_mapped_file",
    "active_file_bytes": "total_active_file",
    "inactive_file_bytes": "total_inactive_file",
    "swap_bytes": "total_swap",
    "page_faults": "pgfault",
    "major_page_faults": "pgmajfault",
}
_V2_STAT = {
    "rss_bytes": "anon",
    "cache_bytes": "file",
    "mapped_file_bytes": "file_mapped",
    "active_file_bytes": "active_file",
    "inactive_file_bytes": "inactive_file",
    "page_faults": "pgfault",
    "major_page_faults": "pgmajfault",
}


def memory_usage(files: HostFiles) -> MemoryUsage:
    """Memory in use; where the root cgroup is not in sight, or does not tell, what /proc has for the machine."""
    meminfo = {key: size * 1024 for key, size in files.numbers("proc/meminfo", *_MEMINFO).items()}
    swap_bytes = meminfo.get("SwapTotal", 0) - meminfo.get("SwapFree", 0)
    totals: dict[str, Any] = {"total_bytes": meminfo["MemTotal"], "swap_total_bytes": meminfo.get("SwapTotal", 0)}
    match root_version(files):
        case 1:
            usage_bytes = files.number(f"{_V1}/memory.usage_in_bytes")
            return MemoryUsage(**totals, usage_bytes=usage_bytes, **_stat(files, f"{_V1}/memory.stat", _V1_STAT))
        case 2 if files.exists(f"{_V2}/memory.stat"):  # or the kernel was told not to count memory
            stat = _stat(files, f"{_V2}/memory.stat", _V2_STAT)
            usage_bytes = stat["rss_bytes"] + stat["cache_bytes"]  # the root has no memory.current
            return MemoryUsage(**totals, usage_bytes=usage_bytes, swap_bytes=swap_bytes, **stat)
        case _:
            return MemoryUsage(**totals, swap_bytes=swap_bytes, **_without_cgroup(files, meminfo))


def memory_in_detail(files: HostFiles) -> MemoryUsage:
    """The same with pressure, and what only cgroup v1 counts: kernel memory, the peak, and limits that were hit."""
    usage = replace(memory_usage(files), pressure=pressure(files, "memory"))
    if root_version(files) != 1:
        return usage
    return replace(
        usage,
        kernel_bytes=files.number(f"{_V1}/memory.kmem.usage_in_bytes"),
        peak_bytes=files.number(f"{_V1}/memory.max_usage_in_bytes"),
        failures=files.number(f"{_V1}/memory.failcnt"),
    )


def memory_of(files: HostFiles, folder: str) -> MemoryUsage:
    """Memory of one cgroup of version 2 that is not the root."""
    return MemoryUsage(
        total_bytes=_limit(files, f"{folder}/memory.max"),
        usage_bytes=files.number(f"{folder}/memory.current"),
        swap_total_bytes=_limit(files, f"{folder}/memory.swap.max"),
        swap_bytes=int(files.first((f"{folder}/memory.swap.current",)) or 0),
        pressure=stalls(files, f"{folder}/memory.pressure"),
        **_stat(files, f"{folder}/memory.stat", _V2_STAT),
    )


def _limit(files: HostFiles, name: str) -> int:
    """A limit as cAdvisor reads it: 0 where there is no such file."""
    text = files.first((name,)) or "0"
    return 2**64 - 1 if text == "max" else int(text)


def _stat(files: HostFiles, name: str, fields: Mapping[str, str]) -> dict[str, Any]:
    found = files.numbers(name, *fields.values())
    return {field: found.get(key, 0) for field, key in fields.items()}


def _without_cgroup(files: HostFiles, meminfo: Mapping[str, int]) -> dict[str, Any]:
    """The nearest to the same in the kernel's figures for the whole machine."""
    free_bytes = meminfo.get("MemFree", 0)
    faults = files.numbers("proc/vmstat", "pgfault", "pgmajfault") if files.exists("proc/vmstat") else {}
    return {
        "usage_bytes": meminfo["MemTotal"] - free_bytes,
        "rss_bytes": meminfo.get("AnonPages", 0),
        "cache_bytes": meminfo.get("Cached", 0),
        "mapped_file_bytes": meminfo.get("Mapped", 0),
        "active_file_bytes": 0,
        "inactive_file_bytes": max(0, meminfo["MemAvailable"] - free_bytes),  # what could be reclaimed
        "page_faults": faults.get("pgfault", 0),
        "major_page_faults": faults.get("pgmajfault", 0),
    }
