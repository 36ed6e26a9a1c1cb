"""What of the machine is in use, in the terms of cAdvisor; core/summary.py serialises it as a kubelet does."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from agent.core.model import Filesystem, HostSnapshot

_WINDOW_SECONDS = 10.0  # as cAdvisor's housekeeping, which a kubelet takes its rates from
_FORGOTTEN_SECONDS = 120.0


class Detail(Enum):
    """How much somebody wants to know."""

    COUNTERS = "CPU, memory, network and tasks: nothing that a dead disk could delay"
    NODE = "these, and the node's own filesystem"
    MOUNTS = "these, processes, and every mounted filesystem"


class Stall(NamedTuple):
    """One line of the kernel's pressure stall information."""

    total: int = 0  # microseconds
    avg10: float = 0.0
    avg60: float = 0.0
    avg300: float = 0.0


class Pressure(NamedTuple):
    """How long tasks waited for a resource: some of them, and all of them at once."""

    some: Stall = Stall()
    full: Stall = Stall()


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUsage:
    """CPU time since boot."""

    total_ns: int
    user_ns: int
    system_ns: int
    nanocores: int | None = None  # the rate; None while there is nothing to compare with
    period_us: int = 0  # of the root's CFS quota, where the kernel reports it
    shares: int = 0
    pressure: Pressure | None = None  # None where the kernel does not count it


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUsage:
    """Memory in use, by kind."""

    total_bytes: int  # what the machine has, or a cgroup's limit
    usage_bytes: int
    rss_bytes: int
    cache_bytes: int
    mapped_file_bytes: int
    active_file_bytes: int
    inactive_file_bytes: int
    page_faults: int
    major_page_faults: int
    swap_total_bytes: int
    swap_bytes: int
    kernel_bytes: int = 0
    peak_bytes: int = 0
    failures: int = 0  # how often a limit was hit
    pressure: Pressure | None = None

    @property
    def working_set_bytes(self) -> int:
        """What cannot be reclaimed at once: all but the page cache that nobody looked at lately."""
        return max(0, self.usage_bytes - self.inactive_file_bytes)

    @property
    def available_bytes(self) -> int:
        """What is left: not the kernel's MemAvailable."""
        return max(0, self.total_bytes - self.working_set_bytes)


class InterfaceUsage(NamedTuple):
    """What went through one network interface since boot."""

    name: str
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class DiskActivity(NamedTuple):
    """What a disk did since boot; the fields are those of /proc/diskstats."""

    reads: int = 0
    reads_merged: int = 0
    sectors_read: int = 0
    read_ms: int = 0
    writes: int = 0
    writes_merged: int = 0
    sectors_written: int = 0
    write_ms: int = 0
    in_progress: int = 0
    io_ms: int = 0
    weighted_io_ms: int = 0


class MountUsage(NamedTuple):
    """One mounted filesystem, by the device that cAdvisor names it after, and the disk below it."""

    device: str
    filesystem: Filesystem
    activity: DiskActivity


class BlockUsage(NamedTuple):
    """What a block device did, as the root of cgroup v2 counts it."""

    device: str  # empty where nobody knows its name
    number: str  # major:minor
    read_bytes: int
    written_bytes: int
    reads: int
    writes: int


class Processes(NamedTuple):
    """What runs in the root cgroup itself; on a machine with systemd that is the kernel's own threads."""

    processes: int
    threads: int  # 0 under cgroup v1, as cAdvisor has it
    open_files_limit: int | None  # of process 1; -1 is none
    oom_kills: int  # on the whole machine


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupUsage:
    """What a cgroup uses, and when it began."""

    since: datetime
    cpu: CpuUsage | None = None
    memory: MemoryUsage | None = None
    io_pressure: Pressure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUsage:
    """The machine's use at one moment; what could not be read is None, or nothing."""

    host: HostSnapshot
    at: datetime
    booted_at: datetime
    root: CgroupUsage  # the whole machine
    own: CgroupUsage | None = None  # what we run in; None without cgroup v2, or if that is the root
    interfaces: tuple[InterfaceUsage, ...] = ()
    pids_used: int = 0
    processes: Processes | None = None
    nodefs: Filesystem | None = None
    mounts: tuple[MountUsage, ...] = ()
    blocks: tuple[BlockUsage, ...] = ()
    physical_cores: int = 0
    sockets: int = 0


class CpuSample(NamedTuple):
    """The CPU time at a moment of a clock that never jumps."""

    at_seconds: float
    total_ns: int


class CpuRate:
    """CPU time → cores in use, over the last 10 to 20 s where somebody asks that often."""

    def __init__(self) -> None:
        self._samples: list[CpuSample] = []  # two at most, a window apart

    def nanocores(self, now: CpuSample) -> int | None:
        """The rate up to now; None if nobody asked lately, and there is nothing to compare with."""
        samples = [sample for sample in self._samples if now.at_seconds - sample.at_seconds < _FORGOTTEN_SECONDS]
        if len(samples) > 1 and now.at_seconds - samples[1].at_seconds >= _WINDOW_SECONDS:
            samples.pop(0)
        rate = _rate(samples[0], now) if samples else None
        if not samples or now.at_seconds - samples[-1].at_seconds >= _WINDOW_SECONDS:
            samples.append(now)
        self._samples = samples
        return rate


def _rate(earlier: CpuSample, now: CpuSample) -> int | None:
    seconds = now.at_seconds - earlier.at_seconds
    return max(0, int((now.total_ns - earlier.total_ns) / seconds)) if seconds > 0 else None
