"""What the kernel counts, of the machine or of one cgroup: CPU time, memory, pressure, network, processes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.files import HostFiles
from agent.core.usage import CpuUsage, InterfaceUsage, MemoryUsage, Pressure, Processes, Stall

_TICK_NS = 10_000_000  # what /proc counts in, on every architecture
_IGNORED_DEVICES = ("lo", "veth", "docker", "nerdctl")  # cAdvisor v0.56: libcontainer/handler.go, ignoredDevicePrefixes
_V1_MEMORY, _V2_ROOT = "sys/fs/cgroup/memory", "sys/fs/cgroup"
_MEMINFO = ("MemTotal", "MemFree", "MemAvailable", "AnonPages", "Cached", "Mapped", "SwapTotal", "SwapFree")


class _StatKeys(NamedTuple):
    """The keys in memory.stat of the fields of MemoryUsage."""

    rss: str
    cache: str
    mapped_file: str
    active_file: str
    inactive_file: str
    page_faults: str = "pgfault"
    major_page_faults: str = "pgmajfault"


_V1_STAT = _StatKeys("total_rss", "total_cache", "total_mapped_file", "total_active_file", "total_inactive_file")
_V2_STAT = _StatKeys("anon", "file", "file_mapped", "active_file", "inactive_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """What does not change while the machine is up."""

    booted_at: datetime
    root_since: datetime  # when the root cgroup was created, as cAdvisor reckons it
    physical_cores: int
    sockets: int


def cpu_usage(files: HostFiles) -> CpuUsage:
    """Return the CPU time of the root cgroup, or of the machine in /proc where that cgroup is not visible."""
    match root_version(files):
        case 1:
            ticks = files.numbers("sys/fs/cgroup/cpuacct/cpuacct.stat", "user", "system")
            return CpuUsage(
                total_ns=files.number("sys/fs/cgroup/cpuacct/cpuacct.usage"),
                user_ns=ticks["user"] * _TICK_NS,
                system_ns=ticks["system"] * _TICK_NS,
                period_us=files.number("sys/fs/cgroup/cpu/cpu.cfs_period_us"),
                shares=files.number("sys/fs/cgroup/cpu/cpu.shares"),
            )
        case 2 if files.exists("sys/fs/cgroup/cpu.stat"):
            return cpu_of(files, "sys/fs/cgroup")
        case _:
            user, nice, system, _, _, irq, softirq = map(int, files.lines("proc/stat")[0].split()[1:8])
            user_ns, system_ns = (user + nice) * _TICK_NS, (system + irq + softirq) * _TICK_NS
            total_ns = user_ns + system_ns
            return CpuUsage(total_ns=total_ns, user_ns=user_ns, system_ns=system_ns, pressure=pressure(files, "cpu"))


def cpu_of(files: HostFiles, folder: str) -> CpuUsage:
    """Return the CPU time of one cgroup of version 2."""
    stat = files.numbers(f"{folder}/cpu.stat", "usage_usec", "user_usec", "system_usec")
    return CpuUsage(
        total_ns=stat["usage_usec"] * 1000,
        user_ns=stat["user_usec"] * 1000,
        system_ns=stat["system_usec"] * 1000,
        pressure=stalls(files, f"{folder}/cpu.pressure"),
    )


def memory_usage(files: HostFiles) -> MemoryUsage:
    """Return the memory that the root cgroup uses, or the machine in /proc where that cgroup is not visible."""
    meminfo = {key: size * 1024 for key, size in files.numbers("proc/meminfo", *_MEMINFO).items()}
    total_bytes, swap_total_bytes = meminfo["MemTotal"], meminfo.get("SwapTotal", 0)
    swap_bytes = swap_total_bytes - meminfo.get("SwapFree", 0)
    match root_version(files):
        case 1:
            stat = files.numbers(f"{_V1_MEMORY}/memory.stat", *_V1_STAT, "total_swap")
            return _memory_from_stat(
                stat,
                _V1_STAT,
                total_bytes=total_bytes,
                usage_bytes=files.number(f"{_V1_MEMORY}/memory.usage_in_bytes"),
                swap_total_bytes=swap_total_bytes,
                swap_bytes=stat.get("total_swap", 0),
            )
        case 2 if files.exists(f"{_V2_ROOT}/memory.stat"):  # absent if the kernel does not count memory
            stat = files.numbers(f"{_V2_ROOT}/memory.stat", *_V2_STAT)
            return _memory_from_stat(
                stat,
                _V2_STAT,
                total_bytes=total_bytes,
                usage_bytes=stat.get("anon", 0) + stat.get("file", 0),  # the root has no memory.current
                swap_total_bytes=swap_total_bytes,
                swap_bytes=swap_bytes,
            )
        case _:
            free_bytes = meminfo.get("MemFree", 0)
            faults = files.numbers("proc/vmstat", "pgfault", "pgmajfault") if files.exists("proc/vmstat") else {}
            return MemoryUsage(
                total_bytes=total_bytes,
                usage_bytes=total_bytes - free_bytes,
                rss_bytes=meminfo.get("AnonPages", 0),
                cache_bytes=meminfo.get("Cached", 0),
                mapped_file_bytes=meminfo.get("Mapped", 0),
                active_file_bytes=0,
                inactive_file_bytes=max(0, meminfo["MemAvailable"] - free_bytes),  # what could be reclaimed
                page_faults=faults.get("pgfault", 0),
                major_page_faults=faults.get("pgmajfault", 0),
                swap_total_bytes=swap_total_bytes,
                swap_bytes=swap_bytes,
            )


def memory_in_detail(files: HostFiles) -> MemoryUsage:
    """Return the same with pressure, and what only cgroup v1 counts: kernel memory, the peak, limits that were hit."""
    usage = replace(memory_usage(files), pressure=pressure(files, "memory"))
    if root_version(files) != 1:
        return usage
    return replace(
        usage,
        kernel_bytes=files.number(f"{_V1_MEMORY}/memory.kmem.usage_in_bytes"),
        peak_bytes=files.number(f"{_V1_MEMORY}/memory.max_usage_in_bytes"),
        failures=files.number(f"{_V1_MEMORY}/memory.failcnt"),
    )


def memory_of(files: HostFiles, folder: str) -> MemoryUsage:
    """Return the memory of one cgroup of version 2 that is not the root."""
    usage = _memory_from_stat(
        files.numbers(f"{folder}/memory.stat", *_V2_STAT),
        _V2_STAT,
        total_bytes=_limit(files, f"{folder}/memory.max"),
        usage_bytes=files.number(f"{folder}/memory.current"),
        swap_total_bytes=_limit(files, f"{folder}/memory.swap.max"),
        swap_bytes=int(files.first((f"{folder}/memory.swap.current",)) or 0),
    )
    return replace(usage, pressure=stalls(files, f"{folder}/memory.pressure"))


def _limit(files: HostFiles, name: str) -> int:
    """Return a limit as cAdvisor reads it: 0 if there is no such file."""
    text = files.first((name,)) or "0"
    return 2**64 - 1 if text == "max" else int(text)


def _memory_from_stat(
    stat: Mapping[str, int],
    keys: _StatKeys,
    *,
    total_bytes: int,
    usage_bytes: int,
    swap_total_bytes: int,
    swap_bytes: int,
) -> MemoryUsage:
    return MemoryUsage(
        total_bytes=total_bytes,
        usage_bytes=usage_bytes,
        rss_bytes=stat.get(keys.rss, 0),
        cache_bytes=stat.get(keys.cache, 0),
        mapped_file_bytes=stat.get(keys.mapped_file, 0),
        active_file_bytes=stat.get(keys.active_file, 0),
        inactive_file_bytes=stat.get(keys.inactive_file, 0),
        page_faults=stat.get(keys.page_faults, 0),
        major_page_faults=stat.get(keys.major_page_faults, 0),
        swap_total_bytes=swap_total_bytes,
        swap_bytes=swap_bytes,
    )


def pressure(files: HostFiles, resource: Literal["cpu", "memory", "io"]) -> Pressure | None:
    """Return how long tasks waited for a resource; None if the kernel does not count it, and under cgroup v1.

    cAdvisor has none under cgroup v1 either.
    """
    match root_version(files):
        case 1:
            return None
        case 2:
            return stalls(files, f"sys/fs/cgroup/{resource}.pressure")
        case _:
            return stalls(files, f"proc/pressure/{resource}")


def stalls(files: HostFiles, name: str) -> Pressure | None:
    """Read a file of pressure stall information; None if there is none, or the kernel is set not to count."""
    try:
        lines = files.lines(name)
    except OSError:
        return None
    return Pressure(**{line.partition(" ")[0]: _stall(line) for line in lines}) if lines else None


def _stall(line: str) -> Stall:
    pairs = dict(word.split("=") for word in line.split()[1:])
    return Stall(
        total=int(pairs["total"]),
        avg10=float(pairs["avg10"]),
        avg60=float(pairs["avg60"]),
        avg300=float(pairs["avg300"]),
    )


def interfaces(files: HostFiles) -> tuple[InterfaceUsage, ...]:
    """Return the traffic of each interface that cAdvisor reports."""
    table = files.first(("proc/1/net/dev", "proc/net/dev")).splitlines()[2:]
    return tuple(_interfaces(table))


def _interfaces(table: list[str]) -> Iterator[InterfaceUsage]:
    for line in table:
        name, _, counters = line.partition(":")
        if not name.strip().lower().startswith(_IGNORED_DEVICES):
            fields = [int(field) for field in counters.split()]
            yield InterfaceUsage(name.strip(), *fields[:4], *fields[8:12])


def processes(files: HostFiles) -> Processes | None:
    """Return the processes of the root cgroup; None if that is not visible."""
    version = root_version(files)
    if not version:
        return None
    count = len(files.lines("sys/fs/cgroup/cpu/cgroup.procs" if version == 1 else "sys/fs/cgroup/cgroup.procs"))
    limits = re.search(r"^Max open files\s+(\d+|unlimited)", files.first(("proc/1/limits",)), re.MULTILINE)
    return Processes(
        processes=count,
        threads=count if version == 2 else 0,
        open_files_limit=(-1 if limits[1] == "unlimited" else int(limits[1])) if limits else None,
        oom_kills=files.numbers("proc/vmstat", "oom_kill").get("oom_kill", 0),
    )


def origins(files: HostFiles) -> Origins:
    """Return when the machine and its root cgroup began, and its cores and sockets as cAdvisor counts them."""
    booted_at = datetime.fromtimestamp(files.numbers("proc/stat", "btime")["btime"], UTC)
    return Origins(
        booted_at=booted_at,
        root_since=max(
            booted_at.replace(second=0), _root_changed_at(files) or booted_at
        ),  # like cAdvisor, whole minutes
        physical_cores=_distinct(files, "core id", "core_id"),
        sockets=_distinct(files, "physical id", "physical_package_id"),
    )


def _root_changed_at(files: HostFiles) -> datetime | None:
    """Return when the root cgroup last changed, in its oldest hierarchy: the kernel has no time of its creation."""
    top = files.path("sys/fs/cgroup")
    marks = [path for mark in top.glob("*/cgroup.clone_children") for path in (mark, mark.parent)]
    times = [path.stat().st_mtime for path in ([top] if root_version(files) == 2 else marks)]
    return datetime.fromtimestamp(min(times), UTC) if times else None


def _distinct(files: HostFiles, key: str, file: str) -> int:
    """Return how many values a property of the CPUs has; like cAdvisor, equal numbers in two sockets count once."""
    values = set(re.findall(rf"^{key}\s*:\s*(\d+)$", files.first(("proc/cpuinfo",)), re.MULTILINE))
    if not values:
        values = {path.read_text() for path in files.path("sys/devices/system/cpu").glob(f"cpu[0-9]*/topology/{file}")}
    return len(values)
