"""Which cgroups we see, and the limits of our own, for those who want a container's size told and not its host's."""

from agent.adapters.host.files import HostFiles

_V1_UNLIMITED = 2**62  # a v1 memory limit above this means none


def root_version(files: HostFiles) -> int:
    """1 or 2: the cgroups whose root is in sight; 0 where there are none, or only those of a container."""
    if files.exists("sys/fs/cgroup/memory/cgroup.sane_behavior"):  # of all cgroups only the root has this
        return 1
    if files.exists("sys/fs/cgroup/cgroup.controllers") and not files.exists("sys/fs/cgroup/cgroup.type"):
        return 2
    return 0


def mounted_version(files: HostFiles) -> int:
    """1 or 2: the cgroups that are mounted, be they the machine's or those of a container; 0 where there are none."""
    if files.exists("sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if files.exists("sys/fs/cgroup/memory") else 0


def own_folder(files: HostFiles) -> str | None:
    """Where the cgroup is that we run in; None without cgroup v2."""
    return _own_path(files, "") if files.exists("sys/fs/cgroup/cgroup.controllers") else None


def cgroup_limits(files: HostFiles, host: dict[str, object]) -> dict[str, object]:
    """The host's figures, cut down to what our own cgroup allows."""
    path = _own_path(files, "")
    limited = _v2(files, path) if path is not None and files.lines(f"{path}/memory.max") else _v1(files)
    total = int(str(host["memory_bytes"]))
    memory_bytes = min(total, limited["memory_bytes"] or total)
    told = dict(host)
    if limited["cpu_millicores"]:
        told["cpu_millicores"] = min(int(str(host["cpu_millicores"])), limited["cpu_millicores"])
    if memory_bytes < total:
        told["memory_bytes"] = memory_bytes
        told["memory_available_bytes"] = max(0, memory_bytes - limited["working_set_bytes"])
    return told


def _v2(files: HostFiles, path: str) -> dict[str, int]:
    stat = files.numbers(f"{path}/memory.stat", "inactive_file")
    quota, _, period = (files.lines(f"{path}/cpu.max") or ["max 100000"])[0].partition(" ")
    limit = files.text(f"{path}/memory.max")
    return {
        "cpu_millicores": 0 if quota == "max" else 1000 * int(quota) // int(period),
        "memory_bytes": 0 if limit == "max" else int(limit),
        "working_set_bytes": max(0, files.number(f"{path}/memory.current") - stat["inactive_file"]),
    }


def _v1(files: HostFiles) -> dict[str, int]:
    cpu = _own_path(files, "cpu") or "sys/fs/cgroup/cpu"
    memory = _own_path(files, "memory") or "sys/fs/cgroup/memory"
    quota = int((files.lines(f"{cpu}/cpu.cfs_quota_us") or ["-1"])[0])
    limit = files.number(f"{memory}/memory.limit_in_bytes")
    usage = files.number(f"{memory}/memory.usage_in_bytes")
    return {
        "cpu_millicores": 0 if quota <= 0 else 1000 * quota // files.number(f"{cpu}/cpu.cfs_period_us"),
        "memory_bytes": 0 if limit >= _V1_UNLIMITED else limit,
        "working_set_bytes": max(
            0, usage - files.numbers(f"{memory}/memory.stat", "total_inactive_file")["total_inactive_file"]
        ),
    }


def _own_path(files: HostFiles, controller: str) -> str | None:
    """Our cgroup's folder; in a cgroup namespace, or where it is mounted as the root, that is the root."""
    for line in files.lines("proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == controller or (controller and controller in controllers.split(",")):
            top = f"sys/fs/cgroup/{controller}".rstrip("/")
            own = f"{top}/{path.strip('/')}".rstrip("/")
            return own if files.path(own).is_dir() else top
    return None
