"""Whether the API server can be reached: the first request that gets through after an outage ends it for all."""

import asyncio
from collections.abc import Callable

from agent.core.schedule import TokenBucket
from agent.ports import Clock

_WAKES_PER_SECOND, _WAKES_AT_ONCE = 200.0, 50  # an API server that is back is not overrun by all nodes at once


class Connectivity:
    """Wakes those who wait for the API server as soon as somebody gets through, paced by a token bucket."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recovered = asyncio.Event()
        self._waiting: dict[Callable[[float], None], None] = {}  # a set that keeps the order
        self._pace = TokenBucket(_WAKES_PER_SECOND, _WAKES_AT_ONCE)

    def on_recovered(self, wake: Callable[[float], None]) -> None:
        """Call this once after the next recovery, with the seconds to wait before the next try."""
        self._waiting[wake] = None

    async def wait_or_recovered(self, seconds: float) -> None:
        """Wait so long, or until somebody gets through."""
        await self._clock.wait(self._recovered, seconds)

    def notify_recovered(self) -> None:
        """Wake all who wait: a request got through after others had failed."""
        self._recovered.set()
        self._recovered = asyncio.Event()
        waiting, self._waiting = self._waiting, {}
        now = self._clock.monotonic()
        for wake in waiting:
            wake(self._pace.wait_seconds(now))
