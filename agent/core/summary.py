"""The stats/v1alpha1 Summary: key by key what a kubelet answers at /stats/summary about its node."""

from datetime import datetime

from agent.core.model import Filesystem, Object
from agent.core.times import timestamp
from agent.core.usage import CgroupUsage, HostUsage, InterfaceUsage, MemoryUsage, Pressure, Stall

_DEFAULT_INTERFACE = "eth0"  # kubelet v1.36: stats/helper.go; its figures stand for the node's
_UNLIMITED = 2**62  # a limit above this is none


def node_summary(usage: HostUsage, *, node_name: str, only_cpu_and_memory: bool = False) -> Object:
    """The Summary without pods; a figure that could not be read is left out, and never the answer."""
    # We manage no cgroups, so that of the pods is the root, as in a kubelet with cgroupsPerQOS: false.
    cgroups = ({"kubelet": usage.own} if usage.own else {}) | {"pods": usage.root}
    figures = _cgroup(usage.root, usage.at, io=not only_cpu_and_memory)
    swap = {"swap": figures.pop("swap")} if "swap" in figures else {}
    node = {
        "nodeName": node_name,
        "systemContainers": [
            {"name": name, "startTime": timestamp(cgroup.since)} | _cgroup(cgroup, usage.at, io=not only_cpu_and_memory)
            for name, cgroup in cgroups.items()
        ],
        "startTime": timestamp(usage.root.since if only_cpu_and_memory else usage.booted_at),
    }
    rest = {} if only_cpu_and_memory else _rest(usage)
    return {"node": node | figures | rest | swap}


def _rest(usage: HostUsage) -> Object:
    """What is no cgroup's."""
    figures: Object = {}
    if usage.interfaces:
        figures["network"] = _network(usage)
    if usage.nodefs:
        figures |= _storage(usage.nodefs, timestamp(usage.at))
    figures["rlimit"] = {
        "time": timestamp(usage.at),
        "maxpid": usage.host.pids_max,
        "curproc": usage.pids_used,
    }
    return figures


def _cgroup(cgroup: CgroupUsage, at: datetime, *, io: bool) -> Object:
    figures, time = {}, timestamp(at)
    if cpu := cgroup.cpu:
        figures["cpu"] = {
            "time": time,
            "usageNanoCores": cpu.nanocores or 0,
            "usageCoreNanoSeconds": cpu.total_ns,
            "psi": _psi(cpu.pressure),
        }
    if cgroup.memory:
        figures["memory"] = _memory(cgroup.memory, time)
    if io:
        figures["io"] = {"time": time, "psi": _psi(cgroup.io_pressure)}
    if cgroup.memory:
        figures["swap"] = _swap(cgroup.memory, time)
    return figures


def _memory(memory: MemoryUsage, time: str) -> Object:
    limited = {} if memory.total_bytes > _UNLIMITED else {"availableBytes": memory.available_bytes}
    return {
        "time": time,
        **limited,
        "usageBytes": memory.usage_bytes,
        "workingSetBytes": memory.working_set_bytes,
        "rssBytes": memory.rss_bytes,
        "pageFaults": memory.page_faults,
        "majorPageFaults": memory.major_page_faults,
        "psi": _psi(memory.pressure),
    }


def _swap(memory: MemoryUsage, time: str) -> Object:
    left = max(0, memory.swap_total_bytes - memory.swap_bytes)
    limited = {} if memory.swap_total_bytes > _UNLIMITED else {"swapAvailableBytes": left}
    return {"time": time, **limited, "swapUsageBytes": memory.swap_bytes}


def _psi(pressure: Pressure | None) -> Object:
    """Return zeros where the kernel does not count it, as a kubelet does."""
    pressure = pressure or Pressure()
    return {"full": _stall(pressure.full), "some": _stall(pressure.some)}


def _stall(stall: Stall) -> Object:
    # Go writes a whole float without a point
    return {name: int(value) if value == int(value) else value for name, value in stall._asdict().items()}


def _network(usage: HostUsage) -> Object:
    interfaces = [_interface(interface) for interface in usage.interfaces]
    chosen = next((entry for entry in interfaces if entry["name"] == _DEFAULT_INTERFACE), {"name": ""})
    return {"time": timestamp(usage.at), **chosen, "interfaces": interfaces}


def _interface(interface: InterfaceUsage) -> Object:
    return {
        "name": interface.name,
        "rxBytes": interface.rx_bytes,
        "rxErrors": interface.rx_errors,
        "txBytes": interface.tx_bytes,
        "txErrors": interface.tx_errors,
    }


def _storage(nodefs: Filesystem, time: str) -> Object:
    """The node's filesystem, which would hold images and containers too; there are none of them."""
    empty = _filesystem(nodefs, time, used_bytes=0, inodes_used=0)
    used = _filesystem(
        nodefs, time, used_bytes=nodefs.used_bytes, inodes_used=max(0, nodefs.inodes - nodefs.inodes_free)
    )
    return {"fs": used, "runtime": {"imageFs": empty, "containerFs": dict(empty)}}


def _filesystem(filesystem: Filesystem, time: str, *, used_bytes: int, inodes_used: int) -> Object:
    return {
        "time": time,
        "availableBytes": filesystem.available_bytes,
        "capacityBytes": filesystem.capacity_bytes,
        "usedBytes": used_bytes,
        "inodesFree": filesystem.inodes_free,
        "inodes": filesystem.inodes,
        "inodesUsed": inodes_used,
    }
