"""A clock that is moved by hand, and ways to wait for what others do."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent.machinery.runner import Runnable
from agent.ports import Clock

START = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
_MOST_TURNS = 100_000
_IDLE_TURNS = 20
_PATIENCE_SECONDS = 60.0


class FakeClock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.skew_seconds = 0.0  # how far the wall clock was set forward or back
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed + self.skew_seconds)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        waker = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.elapsed + seconds, next(self._order), waker))
        await waker

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        waits = {asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return event.is_set()

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody waits for time to pass."""
        return any(not waker.done() for _, _, waker in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking sleepers in their order."""
        end = self.elapsed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end + 1e-9:
            self.elapsed, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)
            await settle()
        self.elapsed = end


async def settle() -> None:
    """Let every task run until all of them wait: for time, for each other, or for what is outside this process."""
    loop: Any = asyncio.get_running_loop()
    for _ in range(_MOST_TURNS):
        await asyncio.sleep(0)
        if not loop._ready:  # asyncio has no other way to ask
            return
    raise AssertionError(f"a task has not begun to wait in {_MOST_TURNS} turns of the event loop")


async def idle() -> None:
    """Wait until no connection of this process has anything to read or to take, for a few turns of the event loop."""
    loop: Any = asyncio.get_running_loop()
    turns = 0
    while turns < _IDLE_TURNS:
        await asyncio.sleep(0.001)
        turns = 0 if loop._ready or loop._selector.select(0) else turns + 1


async def until(holds: Callable[[], object]) -> None:
    """Wait for what the kernel, a thread or another process does in its own time."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110  none of them sets an event
            await asyncio.sleep(0.001)


@asynccontextmanager
async def running(*loops: Runnable) -> AsyncIterator[None]:
    """Run loops beside the test, and end them with it; a loop that failed fails the test."""
    tasks = [asyncio.create_task(loop.run()) for loop in loops]
    await settle()
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


if TYPE_CHECKING:
    _: Clock = FakeClock()
