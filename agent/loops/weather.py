"""Waiting out a failure, with jitter, and no longer than it lasts."""

import asyncio
import random
from collections.abc import Callable

from agent.core.schedule import jittered
from agent.ports import Clock, Rand


class Weather:
    """How loops wait for better times: the first to get through wakes all others."""

    def __init__(self, clock: Clock, rand: Rand = random.random) -> None:
        self._clock = clock
        self._rand = rand
        self._better = asyncio.Event()
        self._waiting: dict[Callable[[], None], None] = {}  # a set that keeps the order

    def spread(self, seconds: float, factor: float) -> float:
        """A pause, longer by chance (shorter by a factor below 0): who failed together should not return together."""
        return jittered(seconds, factor, self._rand())

    async def wait_out(self, seconds: float) -> None:
        """Pause for so long, or until somebody gets through."""
        await self._clock.wait(self._better, seconds)

    async def sit_out(self, seconds: float) -> None:
        """Pause for so long, whatever happens."""
        await self._clock.sleep(seconds)

    def on_recovered(self, wake: Callable[[], None]) -> None:
        """Call this once, when somebody gets through, however often it was asked for."""
        self._waiting[wake] = None

    def improved(self) -> None:
        """A request got through after others had failed: whoever waits may try now."""
        self._better.set()
        self._better = asyncio.Event()
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()
