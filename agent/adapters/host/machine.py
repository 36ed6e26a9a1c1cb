"""CPUs, memory, processes and storage of the host."""

import os
from pathlib import Path

from agent.adapters.host.files import HostFiles
from agent.adapters.host.memory import memory_usage
from agent.core.capacity import parse_cpu_list
from agent.core.model import Filesystem

_ONLINE_CPUS = "sys/devices/system/cpu/online"


def cpus(files: HostFiles) -> dict[str, object]:
    """The CPUs that are online; neither affinity nor a cgroup changes what a kubelet tells."""
    online = parse_cpu_list(files.text(_ONLINE_CPUS))
    return {"online_cpus": online, "cpu_millicores": 1000 * len(online)}


def memory(files: HostFiles) -> dict[str, object]:
    """Total memory, what is available of it, and swap."""
    usage = memory_usage(files)
    return {
        "memory_bytes": usage.total_bytes,
        "memory_available_bytes": usage.total_bytes - usage.working_set_bytes,
        "swap_bytes": usage.swap_total_bytes,
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
        return mounted(path)
    except FileNotFoundError:
        return filesystem(path.parent)


def mounted(path: Path) -> Filesystem:
    """The filesystem at a path."""
    stat = os.statvfs(path)
    return Filesystem(
        capacity_bytes=stat.f_frsize * stat.f_blocks,
        available_bytes=stat.f_frsize * stat.f_bavail,
        inodes=stat.f_files,
        inodes_free=stat.f_ffree,
        used_bytes=stat.f_frsize * (stat.f_blocks - stat.f_bfree),
    )
