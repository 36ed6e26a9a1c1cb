"""CPUs, memory, processes and storage of the host."""

import os
from pathlib import Path

from agent.adapters.host.files import HostFiles
from agent.core.capacity import parse_cpu_list
from agent.core.model import Filesystem

_ONLINE_CPUS = "sys/devices/system/cpu/online"


def cpus(files: HostFiles) -> dict[str, object]:
    """The CPUs that are online; neither affinity nor a cgroup changes what a kubelet tells."""
    online = parse_cpu_list(files.text(_ONLINE_CPUS))
    return {"online_cpus": online, "cpu_millicores": 1000 * len(online)}


def memory(files: HostFiles) -> dict[str, object]:
    """Total memory, what is available of it, swap and huge pages."""
    meminfo = files.table("proc/meminfo")
    total_bytes = meminfo["MemTotal"] * 1024
    return {
        "memory_bytes": total_bytes,
        "memory_available_bytes": total_bytes - _working_set_bytes(files, meminfo),
        "swap_bytes": meminfo.get("SwapTotal", 0) * 1024,
        "hugepages_bytes": _hugepages(files),
    }


def processes(files: HostFiles) -> dict[str, object]:
    """How many tasks there are, and how many there can be."""
    limits = (files.number("proc/sys/kernel/pid_max"), files.number("proc/sys/kernel/threads-max"))
    return {"pids_max": min(limits), "pids_used": int(files.text("proc/loadavg").split()[3].partition("/")[2])}


def filesystem(path: Path) -> Filesystem:
    """The filesystem that holds a directory, or will hold it once somebody makes it."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    stat = os.statvfs(existing)
    return Filesystem(
        capacity_bytes=stat.f_frsize * stat.f_blocks,
        available_bytes=stat.f_frsize * stat.f_bavail,
        inodes=stat.f_files,
        inodes_free=stat.f_ffree,
    )


def _working_set_bytes(files: HostFiles, meminfo: dict[str, int]) -> int:
    """Memory in use less inactive page cache, of the root cgroup, as cAdvisor counts it."""
    v1, v2 = "sys/fs/cgroup/memory/memory.stat", "sys/fs/cgroup/memory.stat"
    if stat := files.table(v1):
        return max(0, files.number("sys/fs/cgroup/memory/memory.usage_in_bytes") - stat["total_inactive_file"])
    if stat := files.table(v2):
        return max(0, stat["anon"] + stat["file"] - stat["inactive_file"])  # the v2 root has no memory.current
    return (meminfo["MemTotal"] - meminfo["MemAvailable"]) * 1024


def _hugepages(files: HostFiles) -> dict[int, int]:
    pages = {}
    for folder in sorted(files.path("sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        size = int(folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        pages[size] = size * int((folder / "nr_hugepages").read_text())
    return pages
