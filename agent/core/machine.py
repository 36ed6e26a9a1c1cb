"""A machine that there is not: what stands for the host of a node in a fleet, with nothing running on it."""

from collections.abc import Mapping
from datetime import datetime

from agent.core.model import Filesystem, HostSnapshot
from agent.core.quantity import Quantity
from agent.core.usage import CgroupUsage, CpuUsage, HostUsage, MemoryUsage

DEFAULT_RESOURCES = {
    "cpu": Quantity.of_count(4),
    "memory": Quantity.of_bytes(16 * 2**30),
    "ephemeral-storage": Quantity.of_bytes(100 * 2**30),
}
KERNEL_VERSION, OS_IMAGE = "6.12.0", "Linux"

_BYTES_PER_INODE = 16 * 1024  # ext4's own default
_MOST_CPUS = 8192  # of any Linux; people give a test node a million
_PIDS_MAX, _PIDS_USED = 4 * 2**20, 100
_HUGE_PAGES = "hugepages-"
_IDLE_CORES = 0.01
_IDLE_BYTES, _IDLE_DIVISOR = 256 * 2**20, 16  # the former, or where that is less, a part of all memory


def machine_of(
    resources: Mapping[str, Quantity],
    *,
    architecture: str = "amd64",
    operating_system: str = "linux",
    kernel_version: str = KERNEL_VERSION,
    os_image: str = OS_IMAGE,
) -> HostSnapshot:
    """Return a machine with these resources; what of CPU, memory and storage is missing is as in DEFAULT_RESOURCES."""
    complete = {**DEFAULT_RESOURCES, **resources}
    cpu, memory, storage = (complete[name] for name in DEFAULT_RESOURCES)
    inodes = storage.value // _BYTES_PER_INODE
    return HostSnapshot(
        cpu_millicores=cpu.millis,
        online_cpus=frozenset(range(min(cpu.value, _MOST_CPUS))),
        memory_bytes=memory.value,
        memory_available_bytes=memory.value,
        hugepages_bytes=_hugepages(resources),
        nodefs=Filesystem(
            capacity_bytes=storage.value, available_bytes=storage.value, inodes=inodes, inodes_free=inodes
        ),
        pids_max=_PIDS_MAX,
        pids_used=_PIDS_USED,
        cgroup_version=2,
        kernel_version=kernel_version,
        os_image=os_image,
        operating_system=operating_system,
        architecture=architecture,
    )


def idle_usage(machine: HostSnapshot, *, since: datetime, now: datetime) -> HostUsage:
    """Return what of such a machine is in use: the little that a node without work needs, ever since it came up."""
    busy_ns = round(_IDLE_CORES * (now - since).total_seconds() * 10**9)
    used_bytes = min(_IDLE_BYTES, machine.memory_bytes // _IDLE_DIVISOR)
    memory = MemoryUsage(
        total_bytes=machine.memory_bytes,
        usage_bytes=used_bytes,
        rss_bytes=used_bytes,
        cache_bytes=0,
        mapped_file_bytes=0,
        active_file_bytes=0,
        inactive_file_bytes=0,
        page_faults=0,
        major_page_faults=0,
        swap_total_bytes=machine.swap_bytes,
        swap_bytes=0,
    )
    cpu = CpuUsage(total_ns=busy_ns, user_ns=busy_ns, system_ns=0, nanocores=round(_IDLE_CORES * 10**9))
    return HostUsage(
        host=machine,
        at=now,
        booted_at=since,
        root=CgroupUsage(since=since, cpu=cpu, memory=memory),
        pids_used=machine.pids_used or 0,
        nodefs=machine.nodefs,
        physical_cores=len(machine.online_cpus),
        sockets=1,
    )


def is_of_machine(resource: str) -> bool:
    """Return whether a machine has the resource, rather than the settings of its node."""
    return resource in DEFAULT_RESOURCES or resource.startswith(_HUGE_PAGES)


def _hugepages(resources: Mapping[str, Quantity]) -> dict[int, int]:
    return {
        Quantity.parse(name.removeprefix(_HUGE_PAGES)).value: amount.value
        for name, amount in resources.items()
        if name.startswith(_HUGE_PAGES)
    }
