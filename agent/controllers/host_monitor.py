"""The machine that a node shows: the host, which is read for all nodes of a process, or one that is described."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from agent.core.config import Eviction
from agent.core.model import HostSnapshot
from agent.core.pressure import NO_PRESSURE, Observation, Threshold, next_pressure, signal_observations
from agent.machinery.health import LoopHealth
from agent.machinery.isolation import Isolation
from agent.ports import Clock, Host

_FRESH_SECONDS = 1.0  # however many nodes report their status: the whole host is not read more often


class PressureMonitor:
    """The pressure that one set of eviction settings finds on a machine; nodes on one host may share it."""

    __slots__ = ("_clock", "_eviction", "_listeners", "_pressure", "host", "is_steady")

    def __init__(self, eviction: Eviction, clock: Clock, *, is_steady: bool = False) -> None:
        self.is_steady = is_steady
        """Whether the machine changes only now and then, so that nobody has to look at it all the time."""
        self._eviction = eviction
        self._clock = clock
        self._pressure = NO_PRESSURE
        self.host: HostSnapshot | None = None
        """The host with the size that a Node reports; None before the first reading."""
        self._listeners: list[Callable[[], None]] = []

    @property
    def conditions(self) -> frozenset[str]:
        """The pressure conditions that hold."""
        return self._pressure.conditions

    @property
    def due(self) -> frozenset[Threshold]:
        """The thresholds that have been crossed for longer than their grace periods."""
        return self._pressure.due

    @property
    def signals(self) -> Mapping[str, Observation]:
        """What was left of the host's resources at the last reading."""
        return signal_observations(self.host) if self.host else {}

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call this when the pressure conditions or the size of the host changed; never as a kubelet does it."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        """Do not call this any more."""
        self._listeners.remove(listener)

    def on_glance(self, host: HostSnapshot) -> None:
        """Take in a reading of what changes fast."""
        if self._eviction.as_kubelet:
            self._update_pressure(host)
        else:
            self.on_snapshot(host)

    def on_snapshot(self, host: HostSnapshot) -> None:
        """Take in a reading of the whole host."""
        before, conditions = self.host, self._pressure.conditions
        if self._eviction.as_kubelet:
            self.host = _sized_as(before, host) if before else host
            return
        self.host = host
        self._update_pressure(host)
        if before and (_size(before) != _size(host) or conditions != self._pressure.conditions):
            for listener in self._listeners:
                listener()

    def _update_pressure(self, host: HostSnapshot) -> None:
        self._pressure = next_pressure(
            self._pressure,
            (*self._eviction.hard, *self._eviction.soft),
            signal_observations(host),
            now_seconds=self._clock.monotonic(),
            transition_seconds=self._eviction.transition_seconds,
        )


class Machine(Protocol):
    """What a node shows as its machine."""

    @property
    def pressure(self) -> PressureMonitor:
        """The pressure on the machine."""

    async def snapshot(self) -> HostSnapshot:
        """Return the machine as the Node reports it."""


class DescribedMachine:
    """A machine that exists as a description only; it changes when it is replaced, and costs nothing otherwise."""

    __slots__ = ("_snapshot", "pressure")

    def __init__(self, snapshot: HostSnapshot, eviction: Eviction, clock: Clock) -> None:
        self.pressure = PressureMonitor(eviction, clock, is_steady=True)
        self.replace(snapshot)

    def replace(self, snapshot: HostSnapshot) -> None:
        """Show another machine from now on."""
        self._snapshot = snapshot
        self.pressure.on_snapshot(snapshot)
        self.pressure.on_glance(snapshot)

    async def snapshot(self) -> HostSnapshot:
        """Return the description."""
        return self._snapshot


@dataclass(frozen=True, slots=True)
class HostMachine:
    """The host that we run on, as a node with these eviction settings shows it."""

    monitor: "HostMonitor"
    eviction: Eviction

    @property
    def pressure(self) -> PressureMonitor:
        """The pressure that nodes with equal settings share."""
        return self.monitor.pressure(self.eviction)

    async def snapshot(self) -> HostSnapshot:
        """Return the host, read within the last second."""
        return await self.monitor.snapshot(self.eviction)


class HostMonitor:
    """Reads what changes fast at a fixed interval, and the whole host when a status needs it."""

    def __init__(
        self, host: Host, clock: Clock, *, interval_seconds: float, isolation: Isolation, health: LoopHealth
    ) -> None:
        self.isolation = isolation
        self._host = host
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._health = health
        self._reading = asyncio.Lock()
        self._snapshot: HostSnapshot | None = None
        self._read_at = 0.0
        self._monitors: dict[Eviction, PressureMonitor] = {}

    def pressure(self, eviction: Eviction) -> PressureMonitor:
        """Return the monitor that all nodes with these settings share."""
        return self._monitors.setdefault(eviction, PressureMonitor(eviction, self._clock))

    @property
    def is_used(self) -> bool:
        """Whether a node shows the host."""
        return bool(self._monitors)

    async def sync(self) -> float:
        """Read what changes fast. Returns the seconds until the next reading."""
        began_seconds = self._clock.monotonic()
        host = await self._host.glance()
        self._snapshot = None  # the whole host was read before
        for monitor in self._monitors.values():
            monitor.on_glance(host)
        self._health.ok(self._clock.monotonic() - began_seconds)
        return self._interval_seconds

    async def snapshot(self, eviction: Eviction) -> HostSnapshot:
        """Return the host as a Node with these settings reports it, read within the last second."""
        async with self._reading:
            now = self._clock.monotonic()
            if self._snapshot is None or now - self._read_at >= _FRESH_SECONDS:
                self._snapshot = await self._host.snapshot()
                self._read_at = now
                for monitor in self._monitors.values():
                    monitor.on_snapshot(self._snapshot)
            monitor = self.pressure(eviction)
            if monitor.host is None:
                monitor.on_snapshot(self._snapshot)
            return monitor.host or self._snapshot


def _size(host: HostSnapshot) -> tuple[object, ...]:
    storage_bytes = host.nodefs.capacity_bytes if host.nodefs else None
    return host.cpu_millicores, host.memory_bytes, host.hugepages_bytes, storage_bytes


def _sized_as(first: HostSnapshot, host: HostSnapshot) -> HostSnapshot:
    """A kubelet reads the machine's size once; what could not be read then, it reports later."""
    storage = host.nodefs
    if storage and first.nodefs:
        storage = replace(storage, capacity_bytes=first.nodefs.capacity_bytes)
    return replace(
        host,
        cpu_millicores=first.cpu_millicores or host.cpu_millicores,
        memory_bytes=first.memory_bytes or host.memory_bytes,
        swap_bytes=first.swap_bytes if first.memory_bytes else host.swap_bytes,
        hugepages_bytes=first.hugepages_bytes or host.hugepages_bytes,
        nodefs=storage,
    )
