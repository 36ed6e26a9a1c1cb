"""What of the machine is in use, read on request only."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from agent.adapters.host.cgroup import own_folder
from agent.adapters.host.counters import (
    Origins,
    cpu_of,
    cpu_usage,
    interfaces,
    memory_in_detail,
    memory_of,
    origins,
    pressure,
    processes,
    stalls,
)
from agent.adapters.host.deadline_reader import DeadlineReader, SensorMetrics, Sensors
from agent.adapters.host.files import HostFiles, filesystem_of
from agent.adapters.host.machine import pids_used
from agent.adapters.host.mounts import blocks, mounts
from agent.core.model import Filesystem, HostSnapshot
from agent.core.usage import (
    BlockUsage,
    CgroupUsage,
    CpuRate,
    CpuSample,
    Detail,
    HostUsage,
    InterfaceUsage,
    MountUsage,
    Processes,
)
from agent.ports import Clock

_FIRST_RATE_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """The values of all sensors; those that were not read yet are None or empty."""

    at: datetime | None = None
    at_seconds: float = 0.0  # the same moment on the monotonic clock
    root: CgroupUsage | None = None
    own: CgroupUsage | None = None
    interfaces: tuple[InterfaceUsage, ...] = ()
    pids_used: int = 0
    processes: Processes | None = None
    nodefs: Filesystem | None = None
    mounts: tuple[MountUsage, ...] = ()
    blocks: tuple[BlockUsage, ...] = ()


class UsageReader:
    """Reads the machine's use; a reading that hangs costs its own figures, and no more than the host's deadline."""

    def __init__(self, files: HostFiles, clock: Clock, metrics: SensorMetrics, *, root_dir: str) -> None:
        self._files = files
        self._clock = clock
        self._began = clock.now()
        # All in one thread: to change to another costs as much as ten files. What may hang comes last.
        counters: Sensors[_Sample] = {
            "usage": self._read_root,
            "own usage": self._read_own,
            "interfaces": lambda sample: replace(sample, interfaces=interfaces(files)),
            "tasks": lambda sample: replace(sample, pids_used=pids_used(files)),
        }
        node: Sensors[_Sample] = {
            **counters,
            "nodefs": lambda sample: replace(sample, nodefs=filesystem_of(files.path(root_dir))),
        }
        all_mounts: Sensors[_Sample] = {
            **counters,
            "processes": lambda sample: replace(sample, processes=processes(files)),
            "mounts": lambda sample: replace(sample, mounts=mounts(files), blocks=blocks(files)),
        }
        self._readers = {
            Detail.COUNTERS: DeadlineReader(_Sample(), counters, metrics=metrics),
            Detail.NODE: DeadlineReader(_Sample(), node, metrics=metrics),
            Detail.MOUNTS: DeadlineReader(_Sample(), all_mounts, metrics=metrics),
        }
        self._origins_reader: DeadlineReader[Origins | None] = DeadlineReader(
            None, {"origins": lambda _: origins(files)}, metrics=metrics
        )
        self._origins: Origins | None = None
        self._root_rate = CpuRate()
        self._own_rate = CpuRate()
        self._lock = asyncio.Lock()  # a DeadlineReader does not wait for a reading that another caller started

    @property
    def hangs(self) -> bool:
        """Whether some reading has not come back."""
        return self._origins_reader.hangs or any(reader.hangs for reader in self._readers.values())

    async def read(self, detail: Detail, host: HostSnapshot) -> HostUsage:
        """Return the machine's use now, in as much detail as the caller wants."""
        async with self._lock:
            self._origins = self._origins or await self._origins_reader.read()
            sample = await self._sample_with_rates(detail)
        return HostUsage(
            host=host,
            at=sample.at or self._clock.now(),
            booted_at=self._origins.booted_at if self._origins else self._began,
            root=sample.root or CgroupUsage(since=self._began),
            own=sample.own,
            interfaces=sample.interfaces,
            pids_used=sample.pids_used,
            processes=sample.processes,
            nodefs=sample.nodefs,
            mounts=sample.mounts,
            blocks=sample.blocks,
            physical_cores=self._origins.physical_cores if self._origins else 0,
            sockets=self._origins.sockets if self._origins else 0,
        )

    async def _sample_with_rates(self, detail: Detail) -> _Sample:
        """Take a sample; the first in a long while has no rate yet, so it takes another a moment later."""
        sample = await self._sample(detail)
        if sample.root and sample.root.cpu and sample.root.cpu.nanocores is None:
            await self._clock.sleep(_FIRST_RATE_SECONDS)
            later = await self._sample(Detail.COUNTERS)
            return replace(
                later, processes=sample.processes, nodefs=sample.nodefs, mounts=sample.mounts, blocks=sample.blocks
            )
        return sample

    async def _sample(self, detail: Detail) -> _Sample:
        reader = self._readers[detail]
        sample = await reader.read()
        if reader.hangs:  # a disk that does not answer; the kernel does
            sample = await self._readers[Detail.COUNTERS].read()
        return replace(
            sample,
            root=_with_rate(sample.root, sample.at_seconds, self._root_rate),
            own=_with_rate(sample.own, sample.at_seconds, self._own_rate),
        )

    def _read_root(self, sample: _Sample) -> _Sample:
        cpu = cpu_usage(self._files)
        at, at_seconds = self._clock.now(), self._clock.monotonic()
        root = CgroupUsage(
            since=self._origins.root_since if self._origins else self._began,
            cpu=cpu,
            memory=memory_in_detail(self._files),
            io_pressure=pressure(self._files, "io"),
        )
        return replace(sample, at=at, at_seconds=at_seconds, root=root)

    def _read_own(self, sample: _Sample) -> _Sample:
        files, folder = self._files, own_folder(self._files)
        if folder is None or not files.exists(f"{folder}/memory.current"):
            return replace(sample, own=None)
        own = CgroupUsage(
            since=self._began,
            cpu=cpu_of(files, folder),
            memory=memory_of(files, folder),
            io_pressure=stalls(files, f"{folder}/io.pressure"),
        )
        return replace(sample, own=own)


def _with_rate(usage: CgroupUsage | None, at_seconds: float, rate: CpuRate) -> CgroupUsage | None:
    if usage is None or usage.cpu is None:
        return usage
    nanocores = rate.nanocores(CpuSample(at_seconds, usage.cpu.total_ns))
    return replace(usage, cpu=replace(usage.cpu, nanocores=nanocores))
