"""Which cgroups are visible, and the limits of our own, for a node that reports its container's size."""

from dataclasses import dataclass, replace
from typing import Literal

from agent.adapters.host.files import HostFiles
from agent.core.capacity import parse_cpu_list
from agent.core.model import HostSnapshot

CgroupVersion = Literal[0, 1, 2]
_V1_UNLIMITED = 2**62  # a v1 memory limit above this means none


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What our own cgroup allows and uses; 0 is no limit."""

    cpu_millicores: int
    memory_bytes: int
    working_set_bytes: int


def root_version(files: HostFiles) -> CgroupVersion:
    """Return the version of the cgroups whose root is visible; 0 if there are none, or only those of a container."""
    if files.exists("sys/fs/cgroup/memory/cgroup.sane_behavior"):  # of all cgroups only the root has this
        return 1
    if files.exists("sys/fs/cgroup/cgroup.controllers") and not files.exists("sys/fs/cgroup/cgroup.type"):
        return 2
    return 0


def mounted_version(files: HostFiles) -> CgroupVersion:
    """Return the version of the cgroups that are mounted, the machine's or those of a container; 0 if none are."""
    if files.exists("sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if files.exists("sys/fs/cgroup/memory") else 0


def own_folder(files: HostFiles) -> str | None:
    """Return the folder of the cgroup that we run in; None without cgroup v2."""
    return _own_path(files, "") if files.exists("sys/fs/cgroup/cgroup.controllers") else None


def own_limits(files: HostFiles) -> Limits:
    """Return the limits of the cgroup that we run in; a root has none."""
    folder = own_folder(files)
    return _v1(files) if folder is None else _v2(files, folder)


def limited(host: HostSnapshot, limits: Limits) -> HostSnapshot:
    """Return the host, cut down to what our own cgroup allows."""
    cpu_millicores = min(host.cpu_millicores, limits.cpu_millicores or host.cpu_millicores)
    if not 0 < limits.memory_bytes < host.memory_bytes:
        return replace(host, cpu_millicores=cpu_millicores)
    return replace(
        host,
        cpu_millicores=cpu_millicores,
        memory_bytes=limits.memory_bytes,
        memory_available_bytes=max(0, limits.memory_bytes - limits.working_set_bytes),
    )


def _v2(files: HostFiles, folder: str) -> Limits:
    quota, _, period = _line(files, f"{folder}/cpu.max", "max 100000").partition(" ")
    limit = _line(files, f"{folder}/memory.max", "max")
    used = int(_line(files, f"{folder}/memory.current", "0"))
    inactive = files.numbers(f"{folder}/memory.stat", "inactive_file")["inactive_file"]
    return Limits(
        cpu_millicores=_least(
            0 if quota == "max" else 1000 * int(quota) // int(period),
            _line(files, f"{folder}/cpuset.cpus.effective", ""),
        ),
        memory_bytes=0 if limit == "max" else int(limit),
        working_set_bytes=max(0, used - inactive),
    )


def _v1(files: HostFiles) -> Limits:
    cpu, cpuset, memory = (_own_path(files, name) or f"sys/fs/cgroup/{name}" for name in ("cpu", "cpuset", "memory"))
    quota = int(_line(files, f"{cpu}/cpu.cfs_quota_us", "-1"))
    limit = files.number(f"{memory}/memory.limit_in_bytes")
    used = files.number(f"{memory}/memory.usage_in_bytes")
    inactive = files.numbers(f"{memory}/memory.stat", "total_inactive_file")["total_inactive_file"]
    return Limits(
        cpu_millicores=_least(
            0 if quota <= 0 else 1000 * quota // files.number(f"{cpu}/cpu.cfs_period_us"),
            _line(files, f"{cpuset}/cpuset.effective_cpus", ""),
        ),
        memory_bytes=0 if limit >= _V1_UNLIMITED else limit,
        working_set_bytes=max(0, used - inactive),
    )


def _least(quota_millicores: int, cpu_list: str) -> int:
    """Return the smaller of two limits, of which either may be missing."""
    return min(filter(None, (quota_millicores, 1000 * len(parse_cpu_list(cpu_list)))), default=0)


def _line(files: HostFiles, name: str, default: str) -> str:
    """Return the line of a file, which not every cgroup has."""
    return next(iter(files.lines(name)), default)


def _own_path(files: HostFiles, controller: str) -> str | None:
    """Return our cgroup's folder; in a cgroup namespace, or if it is mounted as the root, that is the root."""
    for line in files.lines("proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == controller or (controller and controller in controllers.split(",")):
            top = f"sys/fs/cgroup/{controller}".rstrip("/")
            own = f"{top}/{path.strip('/')}".rstrip("/")
            return own if files.path(own).is_dir() else top
    return None
