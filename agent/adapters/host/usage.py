"""What of the machine is in use, read when somebody asks: nobody who does not ask pays for it."""

import asyncio
from dataclasses import replace
from typing import Any

from agent.adapters.host.cgroup import own_folder
from agent.adapters.host.counters import cpu_of, cpu_usage, interfaces, origins, pressure, processes, stalls
from agent.adapters.host.deadline_reader import DeadlineReader, Readings
from agent.adapters.host.files import HostFiles
from agent.adapters.host.machine import filesystem, tasks
from agent.adapters.host.memory import memory_in_detail, memory_of
from agent.adapters.host.mounts import blocks, mounts
from agent.adapters.host.sensor_metrics import SensorMetrics
from agent.core.model import HostSnapshot
from agent.core.usage import CgroupUsage, CpuRate, CpuSample, Detail, HostUsage
from agent.ports import Clock

_FIRST_RATE_SECONDS = 0.25


class UsageReader:
    """Reads the machine's use; a reading that hangs costs its own figures, and no more than the host's deadline."""

    def __init__(self, files: HostFiles, clock: Clock, metrics: SensorMetrics, *, root_dir: str) -> None:
        self._files, self._clock = files, clock
        self._began = clock.now()
        counters: Readings = {
            "usage": self._read_root,
            "own usage": self._read_own,
            "interfaces": lambda: {"interfaces": interfaces(files)},
            "tasks": lambda: tasks(files),
        }
        # All in one thread: to change to another costs as much as ten files. What may hang comes last.
        disk: Readings = {"nodefs": lambda: {"nodefs": filesystem(files.path(root_dir))}}
        disks: Readings = {
            "processes": lambda: {"processes": processes(files)},
            "mounts": lambda: {"mounts": mounts(files), "blocks": blocks(files)},
        }
        self._probes = {
            Detail.COUNTERS: DeadlineReader(counters, metrics=metrics),
            Detail.NODE: DeadlineReader({**counters, **disk}, metrics=metrics),
            Detail.MOUNTS: DeadlineReader({**counters, **disks}, metrics=metrics),
        }
        self._origins = DeadlineReader({"origins": lambda: origins(files)}, metrics=metrics)
        self._unchanging: dict[str, Any] = {}
        self._speedometers = {"root": CpuRate(), "own": CpuRate()}
        self._turn = asyncio.Lock()  # a DeadlineReader does not wait for a reading that somebody else has begun

    @property
    def hangs(self) -> bool:
        """Whether some reading has not come back."""
        return any(probe.hangs for probe in (*self._probes.values(), self._origins))

    async def read(self, detail: Detail, host: HostSnapshot) -> HostUsage:
        """The machine's use now, in as much detail as somebody wants."""
        async with self._turn:
            self._unchanging = self._unchanging or dict(await self._origins.read())
            found = await self._counted(detail)
        told: dict[str, Any] = {key: value for key, value in self._unchanging.items() if key != "root_since"}
        unread: dict[str, Any] = {
            "at": self._clock.now(),
            "booted_at": self._began,
            "root": CgroupUsage(since=self._began),
        }
        return HostUsage(**unread | told | found, host=host)

    async def _counted(self, detail: Detail) -> dict[str, Any]:
        """What the kernel counts; a rate takes two moments: the first to ask in a long while waits for the second."""
        found = await self._sample(detail)
        if "root" in found and found["root"].cpu.nanocores is None:
            await self._clock.sleep(_FIRST_RATE_SECONDS)
            found |= await self._sample(Detail.COUNTERS)
        return found

    async def _sample(self, detail: Detail) -> dict[str, Any]:
        probe = self._probes[detail]
        found = dict(await probe.read())
        if probe.hangs:  # a disk that does not answer; the kernel does
            found = dict(await self._probes[Detail.COUNTERS].read())
        at_seconds = found.pop("at_seconds", 0.0)
        for name, speedometer in self._speedometers.items():
            if usage := found.get(name):
                rate = speedometer.nanocores(CpuSample(at_seconds, usage.cpu.total_ns))
                found[name] = replace(usage, cpu=replace(usage.cpu, nanocores=rate))
        return found

    def _read_root(self) -> dict[str, Any]:
        files, cpu = self._files, cpu_usage(self._files)
        at, at_seconds = self._clock.now(), self._clock.monotonic()
        root = CgroupUsage(
            since=self._unchanging.get("root_since", self._began),
            cpu=cpu,
            memory=memory_in_detail(files),
            io_pressure=pressure(files, "io"),
        )
        return {"at": at, "at_seconds": at_seconds, "root": root}

    def _read_own(self) -> dict[str, Any]:
        files, folder = self._files, own_folder(self._files)
        if folder is None or not files.exists(f"{folder}/memory.current"):
            return {"own": None}
        own = CgroupUsage(
            since=self._began,
            cpu=cpu_of(files, folder),
            memory=memory_of(files, folder),
            io_pressure=stalls(files, f"{folder}/io.pressure"),
        )
        return {"own": own}
