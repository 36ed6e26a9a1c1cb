"""Look at the host often, so that pressure is told when it happens."""

from agent.core.config import Eviction
from agent.loops.observe import Observer
from agent.loops.readiness import Readiness
from agent.machinery.health import UNHEARD, Beat
from agent.ports import Clock


class SensorLoop:
    """Wakes the status loop when the host's pressure or size changed."""

    def __init__(
        self, *, eviction: Eviction, observer: Observer, readiness: Readiness, clock: Clock, beat: Beat = UNHEARD
    ) -> None:
        self._eviction = eviction
        self._observer = observer
        self._readiness = readiness
        self._clock = clock
        self._beat = beat

    async def run(self) -> None:
        """Look forever."""
        while True:
            await self._clock.sleep(self._eviction.sensor_seconds)
            began = self._clock.monotonic()
            if await self._observer.look() and not self._eviction.as_kubelet:
                self._readiness.changed()
            self._beat.ok(self._clock.monotonic() - began)
