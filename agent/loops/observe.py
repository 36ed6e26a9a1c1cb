"""From the host to facts: what a status depends on, and whether there is something new to tell."""

from collections.abc import Mapping
from dataclasses import replace

from agent.core.config import Config
from agent.core.eviction import NO_PRESSURE, Observation, Threshold, observe, pressure
from agent.core.facts import Facts
from agent.core.model import HostSnapshot, Object
from agent.loops.readiness import Readiness
from agent.ports import Clock, Host


class Observer:
    """Looks at the host, and remembers how long ago it was under pressure."""

    def __init__(self, *, config: Config, host: Host, readiness: Readiness, clock: Clock) -> None:
        self._config = config
        self._host = host
        self._readiness = readiness
        self._clock = clock
        self._pressure = NO_PRESSURE
        self._seen: HostSnapshot | None = None

    @property
    def pressure(self) -> frozenset[str]:
        """The pressure conditions that hold."""
        return self._pressure.conditions

    @property
    def due(self) -> frozenset[Threshold]:
        """The thresholds that were crossed at the last look, and for as long as that is borne."""
        return self._pressure.due

    @property
    def signals(self) -> Mapping[str, Observation]:
        """What was left of the host's resources at the last look."""
        return observe(self._seen) if self._seen else {}

    async def look(self) -> bool:
        """Glance at the host; whether its pressure conditions or its size differ from the last look."""
        before = self._tellable()
        self._feel(await self._host.glance())
        return self._tellable() != before

    async def facts(self, observed_status: Object) -> Facts:
        """Everything that the next status depends on."""
        host = await self._host.snapshot()
        if not self._config.eviction.as_kubelet:
            self._feel(host)
        elif self._seen:
            host = _sized_as(self._seen, host)
        self._seen = host
        return Facts(
            config=self._config,
            host=host,
            observed=observed_status,
            pressure=self._pressure.conditions,
            problems=self._readiness.problems,
            now=self._clock.now(),
        )

    def _feel(self, host: HostSnapshot) -> None:
        eviction = self._config.eviction
        self._pressure = pressure(
            self._pressure,
            (*eviction.hard, *eviction.soft),
            observe(host),
            now_seconds=self._clock.monotonic(),
            transition_seconds=eviction.transition_seconds,
        )
        if not eviction.as_kubelet:
            self._seen = host

    def _tellable(self) -> object:
        return self._pressure.conditions, self._seen and _size(self._seen)


def _size(host: HostSnapshot) -> dict[str, object]:
    storage = host.nodefs.capacity_bytes if host.nodefs else None
    return {
        "cpu_millicores": host.cpu_millicores,
        "memory_bytes": host.memory_bytes,
        "hugepages_bytes": host.hugepages_bytes,
        "storage": storage,
    }


def _sized_as(first: HostSnapshot, host: HostSnapshot) -> HostSnapshot:
    """A kubelet reads the machine's size once; what could not be read then, it is told later."""
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
