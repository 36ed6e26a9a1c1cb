"""Workers that keep controllers going: each `sync` says when the next one is due."""

import asyncio
from collections.abc import Hashable
from typing import Protocol

from agent.machinery.isolation import Isolation
from agent.machinery.workqueue import WorkQueue


class Controller(Hashable, Protocol):
    """Keeps one object of one node true."""

    isolation: Isolation
    """Where an error that `sync` does not expect ends."""

    async def sync(self) -> float:
        """Bring the object up to date once. Returns the seconds until the next call."""


class Runnable(Protocol):
    """Something that runs until it is cancelled, or until its work is done."""

    async def run(self) -> None:
        """Run."""


class Runner:
    """Calls `sync` of whatever controllers are due, several at a time."""

    def __init__(self, name: str, queue: WorkQueue[Controller], *, workers: int = 1) -> None:
        self.name = name
        self._queue = queue
        self._workers = workers

    async def run(self) -> None:
        """Work until cancelled, or until an error that ends the process on purpose."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while True:
            controller = await self._queue.get()
            try:
                with controller.isolation.attempt() as attempt:
                    delay_seconds = await controller.sync()
                self._queue.add_after(
                    controller, delay_seconds if attempt.retry_seconds is None else attempt.retry_seconds
                )
            finally:
                self._queue.done(controller)
