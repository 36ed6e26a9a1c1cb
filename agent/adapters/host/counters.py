"""What the kernel counts of the whole machine: CPU time, pressure, network, processes."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.files import HostFiles
from agent.core.usage import CpuUsage, InterfaceUsage, Pressure, Processes, Stall

_TICK_NS = 10_000_000  # what /proc counts in, on every architecture
_NOT_TOLD = ("lo", "veth", "docker", "nerdctl")  # cAdvisor v0.56: libcontainer/handler.go, ignoredDevicePrefixes


def cpu_usage(files: HostFiles) -> CpuUsage:
    """CPU time of the root cgroup; where that is not in sight, or does not tell, what /proc has for the machine."""
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
    """CPU time of one cgroup of version 2."""
    stat = files.numbers(f"{folder}/cpu.stat", "usage_usec", "user_usec", "system_usec")
    return CpuUsage(
        total_ns=stat["usage_usec"] * 1000,
        user_ns=stat["user_usec"] * 1000,
        system_ns=stat["system_usec"] * 1000,
        pressure=stalls(files, f"{folder}/cpu.pressure"),
    )


def pressure(files: HostFiles, resource: str) -> Pressure | None:
    """How long tasks waited for it; None where the kernel does not tell, and, like cAdvisor, under cgroup v1."""
    match root_version(files):
        case 1:
            return None
        case 2:
            return stalls(files, f"sys/fs/cgroup/{resource}.pressure")
        case _:
            return stalls(files, f"proc/pressure/{resource}")


def stalls(files: HostFiles, name: str) -> Pressure | None:
    """A file of pressure stall information; None where there is none, or the kernel was told not to count."""
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
    """What went through each interface that cAdvisor tells of."""
    table = files.first(("proc/1/net/dev", "proc/net/dev")).splitlines()[2:]
    return tuple(_interfaces(table))


def _interfaces(table: list[str]) -> Iterator[InterfaceUsage]:
    for line in table:
        name, _, counters = line.partition(":")
        if not name.strip().lower().startswith(_NOT_TOLD):
            fields = [int(field) for field in counters.split()]
            yield InterfaceUsage(name.strip(), *fields[:4], *fields[8:12])


def processes(files: HostFiles) -> Processes | None:
    """The processes of the root cgroup; None where we do not see that."""
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


def origins(files: HostFiles) -> dict[str, object]:
    """When the machine and its root cgroup began, and how many cores and sockets it has, as cAdvisor counts them."""
    booted_at = datetime.fromtimestamp(files.numbers("proc/stat", "btime")["btime"], UTC)
    return {
        "booted_at": booted_at,
        "root_since": max(booted_at.replace(second=0), _made_at(files) or booted_at),  # like cAdvisor, a whole minute
        "physical_cores": _distinct(files, "core id", "core_id"),
        "sockets": _distinct(files, "physical id", "physical_package_id"),
    }


def _made_at(files: HostFiles) -> datetime | None:
    """When the root cgroup was last changed, in its oldest hierarchy: the nearest to a birthday that it has."""
    top = files.path("sys/fs/cgroup")
    marks = [path for mark in top.glob("*/cgroup.clone_children") for path in (mark, mark.parent)]
    times = [path.stat().st_mtime for path in ([top] if root_version(files) == 2 else marks)]
    return datetime.fromtimestamp(min(times), UTC) if times else None


def _distinct(files: HostFiles, key: str, file: str) -> int:
    """How many values a property of the CPUs has; like cAdvisor, equal numbers in two sockets count once."""
    found = set(re.findall(rf"^{key}\s*:\s*(\d+)$", files.first(("proc/cpuinfo",)), re.MULTILINE))
    if not found:
        found = {path.read_text() for path in files.path("sys/devices/system/cpu").glob(f"cpu[0-9]*/topology/{file}")}
    return len(found)
