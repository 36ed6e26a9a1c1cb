"""From the host to facts: one look at everything a status depends on."""

from agent.core.config import Config
from agent.core.eviction import NO_PRESSURE, observe, pressure
from agent.core.facts import Facts
from agent.core.model import Object
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

    async def facts(self, observed_status: Object) -> Facts:
        """Everything that the next status depends on, read now."""
        host = await self._host.snapshot()
        eviction = self._config.eviction
        self._pressure = pressure(
            self._pressure,
            eviction.hard,
            observe(host),
            now_seconds=self._clock.monotonic(),
            transition_seconds=eviction.transition_seconds,
        )
        return Facts(
            config=self._config,
            host=host,
            observed=observed_status,
            pressure=self._pressure.conditions,
            problems=self._readiness.problems,
            now=self._clock.now(),
        )
