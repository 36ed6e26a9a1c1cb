"""Workers that keep controllers going: each `sync` says when the next one is due."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf
from typing import Generic, Protocol, TypeVar

from agent.machinery.dependencies import Dependencies
from agent.machinery.health import LoopHealth
from agent.machinery.isolation import CONTROLLER_PAUSES, Isolation, Pauses
from agent.machinery.workqueue import WorkQueue
from agent.ports import Clock

K = TypeVar("K", bound=Hashable)


class Controller(Hashable, Protocol):
    """Keeps one object of one node true."""

    isolation: Isolation
    """Where an error that `sync` does not expect ends."""

    async def sync(self) -> float:
        """Bring the object up to date once. Returns the seconds until the next call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """The queue that a controller waits in, and the health of its loop."""

    loop: str
    queue: WorkQueue[Controller]
    dependencies: Dependencies
    health: LoopHealth

    @property
    def clock(self) -> Clock:
        """The clock of the process."""
        return self.dependencies.clock

    def isolation(self, pauses: Pauses = CONTROLLER_PAUSES) -> Isolation:
        """Return the isolation of one controller."""
        return self.dependencies.unexpected.isolation(self.loop, self.health, pauses=pauses)


class Runnable(Protocol):
    """Something that runs until it is cancelled, or until its work is done."""

    async def run(self) -> None:
        """Run."""


class Workers(Generic[K]):
    """Take keys from a queue, several at a time, and add each again after the delay that its `sync` returned."""

    def __init__(self, name: str, queue: WorkQueue[K], *, workers: int = 1) -> None:
        self.name = name
        self._queue = queue
        self._workers = workers
        self._group: asyncio.TaskGroup | None = None  # while they run

    async def run(self) -> None:
        """Work until cancelled, or until an error that ends the process on purpose."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for number in range(self._workers):
                self._start(group, number)

    def scale_up(self, workers: int) -> None:
        """Have at least so many workers from now on."""
        for number in range(self._workers, workers):
            if self._group:
                self._start(self._group, number)
        self._workers = max(self._workers, workers)

    async def sync(self, key: K) -> float:
        """Bring one key up to date. Returns the seconds until it is due again; only errors that end all are raised."""
        raise NotImplementedError

    def _start(self, group: asyncio.TaskGroup, number: int) -> None:
        group.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                self._queue.add_after(key, await self.sync(key))
            finally:
                self._queue.done(key)


class Runner(Workers[Controller]):
    """Calls `sync` of whatever controllers are due."""

    async def sync(self, key: Controller) -> float:
        """Call one; an error that it does not expect has it called again after a pause."""
        delay_seconds = inf
        with key.isolation.attempt() as attempt:
            delay_seconds = await key.sync()
        return delay_seconds if attempt.retry_seconds is None else attempt.retry_seconds
