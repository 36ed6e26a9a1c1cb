"""What the machinery drives and listens to: a watch, a store, a controller and a loop, each as simple as can be."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from agent.core.metrics import Registry
from agent.core.model import Object
from agent.machinery.isolation import UnexpectedErrors
from agent.machinery.reflector import Store
from agent.machinery.runner import Controller, Runnable
from agent.ports import Change, Listed, WatchApi
from tests.fakes.clock import FakeClock


class ScriptedWatch:
    """An empty list, and watches that end as a test says: with an error, after a change, or after some seconds."""

    def __init__(self, clock: FakeClock, *ends: Exception | Change | float | None) -> None:
        self.clock = clock
        self.ends = list(ends)
        self.calls: list[tuple[float, str]] = []

    async def list(self) -> Listed:
        self.calls.append((self.clock.elapsed, "list"))
        return Listed([], "5")

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        self.calls.append((self.clock.elapsed, f"watch {version}"))
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, Exception):
            raise end
        yield Change("OPENED", {})
        if isinstance(end, Change):
            yield end
        await self.clock.sleep(end if isinstance(end, float) else seconds)


class FakeReflectorStore:
    """A store that only remembers what it was given; one may be broken."""

    def __init__(self, *, broken: bool = False) -> None:
        self.calls: list[tuple[object, ...]] = []
        self._broken = broken

    def reset(self, objects: Sequence[Object], version: str) -> None:
        if self._broken:
            raise RuntimeError("a bug")
        self.calls.append(("reset", [obj["metadata"]["name"] for obj in objects], version))

    def put(self, obj: Object) -> None:
        self.calls.append(("put", obj["metadata"]["name"]))

    def remove(self, obj: Object) -> None:
        self.calls.append(("remove", obj["metadata"]["name"]))


class FakeController:
    """A controller that is due every ten seconds, and notes when it was called."""

    def __init__(self, clock: FakeClock, errors: UnexpectedErrors, name: str = "fake") -> None:
        self.isolation = errors.isolation(name)
        self.called_at: list[float] = []
        self._clock = clock

    async def sync(self) -> float:
        self.called_at.append(self._clock.monotonic())
        return 10.0


class EndlessLoop:
    """A loop that runs until it is cancelled."""

    def __init__(self) -> None:
        self.ended = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


if TYPE_CHECKING:
    _watch: WatchApi = ScriptedWatch(FakeClock())
    _store: Store = FakeReflectorStore()
    _controller: Controller = FakeController(FakeClock(), UnexpectedErrors(FakeClock(), Registry()))
    _loop: Runnable = EndlessLoop()
