"""What of the machine is in use, read when somebody asks: nobody who does not ask pays for it."""

import asyncio
from dataclasses import replace
from typing import Any

from agent.adapters.host.cgroup import own_folder
from agent.adapters.host.counters import cpu_of, cpu_usage, interfaces, origins, pressure, processes, stalls
from agent.adapters.host.files import HostFiles
from agent.adapters.host.memory import memory_in_detail, memory_of
from agent.adapters.host.mounts import blocks, mounts
from agent.adapters.host.probe import Probe
from agent.adapters.host.sensor_tally import SensorTally
from agent.core.model import Filesystem, HostSnapshot
from agent.core.usage import CgroupUsage, CpuSample, Detail, HostUsage, Speedometer
from agent.ports import Clock

_FIRST_RATE_SECONDS = 0.25


class UsageReader:
    """Reads the machine's use; a reading that hangs costs its own figures, and no more than the host's deadline."""

    def __init__(self, files: HostFiles, clock: Clock, tally: SensorTally) -> None:
        self._files, self._clock = files, clock
        self._began = clock.now()
        self._counters = Probe(
            {
                "usage": self._read_root,
                "own usage": self._read_own,
                "interfaces": lambda: {"interfaces": interfaces(files)},
            },
            tally=tally,
        )
        self._mounts = Probe(
            {
                "processes": lambda: {"processes": processes(files)},
                "mounts": lambda: {"mounts": mounts(files), "blocks": blocks(files)},
            },
            tally=tally,
        )
        self._origins = Probe({"origins": lambda: origins(files)}, tally=tally)
        self._unchanging: dict[str, Any] = {}
        self._speedometers = {"root": Speedometer(), "own": Speedometer()}
        self._turn = asyncio.Lock()  # a Probe does not wait for a reading that somebody else has begun

    @property
    def hangs(self) -> bool:
        """Whether some reading has not come back."""
        return any(probe.hangs for probe in (self._counters, self._mounts, self._origins))

    async def read(self, detail: Detail, host: HostSnapshot, *, nodefs: Filesystem | None) -> HostUsage:
        """The machine's use now, in as much detail as somebody wants."""
        async with self._turn:
            self._unchanging = self._unchanging or dict(await self._origins.read())
            found = await self._counted()
            if detail is Detail.MOUNTS:
                found |= await self._mounts.read()
        told: dict[str, Any] = {key: value for key, value in self._unchanging.items() if key != "root_since"}
        unread: dict[str, Any] = {
            "at": self._clock.now(),
            "booted_at": self._began,
            "root": CgroupUsage(since=self._began),
        }
        return HostUsage(**unread | told | found, host=host, nodefs=nodefs)

    async def _counted(self) -> dict[str, Any]:
        """What the kernel counts; a rate takes two moments: the first to ask in a long while waits for the second."""
        found = await self._sample()
        if "root" in found and found["root"].cpu.nanocores is None:
            await self._clock.sleep(_FIRST_RATE_SECONDS)
            found = await self._sample()
        return found

    async def _sample(self) -> dict[str, Any]:
        found = dict(await self._counters.read())
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
