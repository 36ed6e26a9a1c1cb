"""CPUs, memory, processes and storage of the host."""

import os
from pathlib import Path

from agent.adapters.host.files import HostFiles
from agent.core.capacity import parse_cpu_list
from agent.core.model import Filesystem

_ONLINE_CPUS = "sys/devices/system/cpu/online"
_V1_USAGE, _V1_STAT = "sys/fs/cgroup/memory/memory.usage_in_bytes", "sys/fs/cgroup/memory/memory.stat"
_V2_STAT = "sys/fs/cgroup/memory.stat"


def cpus(files: HostFiles) -> dict[str, object]:
    """The CPUs that are online; neither affinity nor a cgroup changes what a kubelet tells."""
    online = parse_cpu_list(files.text(_ONLINE_CPUS))
    return {"online_cpus": online, "cpu_millicores": 1000 * len(online)}


def memory(files: HostFiles) -> dict[str, object]:
    """Total memory, what is available of it, and swap."""
    meminfo = files.numbers("proc/meminfo", "MemTotal", "MemAvailable", "SwapTotal")
    total_bytes = meminfo["MemTotal"] * 1024
    return {
        "memory_bytes": total_bytes,
        "memory_available_bytes": total_bytes - _working_set_bytes(files, meminfo),
        "swap_bytes": meminfo.get("SwapTotal", 0) * 1024,
    }


def hugepages(files: HostFiles) -> dict[str, object]:
    """How many bytes of each size of huge pages there are."""
    pages = {}
    for folder in sorted(files.path("sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        size = int(folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        pages[size] = size * int((folder / "nr_hugepages").read_text())
    return {"hugepages_bytes": pages}


def task_limit(files: HostFiles) -> dict[str, object]:
    """How many tasks there can be."""
    return {"pids_max": min(files.number("proc/sys/kernel/pid_max"), files.number("proc/sys/kernel/threads-max"))}


def tasks(files: HostFiles) -> dict[str, object]:
    """How many tasks there are."""
    return {"pids_used": int(files.text("proc/loadavg").split()[3].partition("/")[2])}


def filesystem(path: Path) -> Filesystem:
    """The filesystem that holds a directory, or will hold it once somebody makes it."""
    try:
        stat = os.statvfs(path)
    except FileNotFoundError:
        return filesystem(path.parent)
    return Filesystem(
        capacity_bytes=stat.f_frsize * stat.f_blocks,
        available_bytes=stat.f_frsize * stat.f_bavail,
        inodes=stat.f_files,
        inodes_free=stat.f_ffree,
    )


def _working_set_bytes(files: HostFiles, meminfo: dict[str, int]) -> int:
    """Memory in use less inactive page cache, of the root cgroup, as cAdvisor counts it."""
    try:
        usage = files.number(_V1_USAGE)
    except FileNotFoundError:
        return _working_set_without_v1(files, meminfo)
    return max(0, usage - files.numbers(_V1_STAT, "total_inactive_file")["total_inactive_file"])


def _working_set_without_v1(files: HostFiles, meminfo: dict[str, int]) -> int:
    try:
        stat = files.numbers(_V2_STAT, "anon", "file", "inactive_file")
    except FileNotFoundError:
        return (meminfo["MemTotal"] - meminfo["MemAvailable"]) * 1024
    return max(0, stat["anon"] + stat["file"] - stat["inactive_file"])  # the v2 root has no memory.current
