"""Stand-ins that keep state: a clock that is moved by hand, and an API server of a few dicts."""

import asyncio
import copy
import heapq
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any

from agent.controllers.state import NodeState
from agent.core.model import DefaultRoute, Filesystem, HostSnapshot, Interface, Network, Object
from agent.core.nodestatus import Facts
from agent.ports import AlreadyExists, Change, Conflict, Listed, NotFound, Unavailable
from agent.process import Process
from tests.settings import Config

START = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
GIB = 2**30
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
async def running(*loops: Any) -> AsyncIterator[None]:
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


class FakeObjects:
    """One kind of object at an API server: versions, conflicts, and a list of the calls made."""

    def __init__(self, clock: FakeClock) -> None:
        self.objects: dict[str, Object] = {}
        self.calls: list[tuple[float, str]] = []
        self.fail: Callable[[str], Exception | None] = lambda _: None
        self.watch_seconds: list[int] = []
        self._clock = clock
        self._numbers = itertools.count(1)
        self._history: list[Change] = []
        self._news = asyncio.Event()
        self._cuts = 0

    def times(self, verb: str) -> list[float]:
        """When a verb was called."""
        return [at for at, called in self.calls if called == verb]

    async def get(self, name: str) -> Object:
        self._called("get")
        return copy.deepcopy(self._found(name))

    async def create(self, new: Object) -> Object:
        self._called("create")
        name = new["metadata"]["name"]
        if name in self.objects:
            raise AlreadyExists(f'"{name}" already exists')
        return self._store(
            name, {**copy.deepcopy(new), "metadata": {**new["metadata"], "uid": f"uid-{next(self._numbers)}"}}
        )

    async def replace(self, changed: Object) -> Object:
        self._called("replace")
        name, version = changed["metadata"]["name"], changed["metadata"].get("resourceVersion")
        if name not in self.objects or self.objects[name]["metadata"]["resourceVersion"] != version:
            raise Conflict("the object has been modified")
        return self._store(name, copy.deepcopy(changed))

    async def patch_status(self, name: str, patch: Object) -> Object:
        self._called("patch_status")
        return self._store(name, merged(self._found(name), patch))

    async def patch(self, what: str | Object, patch: Object) -> Object:
        """Patch an object by its name, or an event that is given whole."""
        self._called("patch")
        name = what if isinstance(what, str) else what["metadata"]["name"]
        return self._store(name, merged(self._found(name), patch))

    async def delete(self, name: str) -> None:
        self._called("delete")
        gone = self._found(name)
        del self.objects[name]
        gone["metadata"]["resourceVersion"] = str(next(self._numbers))
        self._tell("DELETED", gone)

    async def list(self) -> Listed:
        self._called("list")
        return Listed([copy.deepcopy(obj) for obj in self.objects.values()], str(next(self._numbers)))

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        self._called("watch")
        self.watch_seconds.append(seconds)
        end, cuts = self._clock.elapsed + seconds, self._cuts
        yield Change("OPENED", {})
        seen = next((n for n, change in enumerate(self._history) if _number(change) > int(version)), len(self._history))
        while self._clock.elapsed < end:
            for change in self._history[seen:]:
                yield copy.deepcopy(change)
            seen = len(self._history)
            await self._clock.wait(self._news, end - self._clock.elapsed)
            if self._cuts > cuts:
                raise Unavailable("the connection was cut")

    def cut(self) -> None:
        """End all watches as a crash of the server does."""
        self._cuts += 1
        self._announce()

    def _called(self, verb: str) -> None:
        self.calls.append((self._clock.elapsed, verb))
        if error := self.fail(verb):
            raise error

    def _found(self, name: str) -> Object:
        if name not in self.objects:
            raise NotFound(f'"{name}" not found')
        return self.objects[name]

    def _store(self, name: str, stored: Object) -> Object:
        stored["metadata"]["resourceVersion"] = str(next(self._numbers))
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = stored
        self._tell(kind, stored)
        return copy.deepcopy(stored)

    def _tell(self, kind: str, obj: Object) -> None:
        self._history.append(Change(kind, copy.deepcopy(obj)))
        self._announce()

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _number(change: Change) -> int:
    return int(change.object["metadata"]["resourceVersion"])


def merged(base: Any, patch: Any) -> Any:
    """A strategic merge of the kind that `core/patch.py` writes."""
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(base)
    for name, change in patch.items():
        if name.startswith("$"):
            continue
        if change is None:
            result.pop(name, None)
        elif name == "conditions":
            order = [one["type"] for one in patch.get("$setElementOrder/conditions", ())]
            result[name] = _merged_by_type(result.get(name, []), change, order)
        elif name == "addresses":
            result[name] = [entry for entry in change if "$patch" not in entry]
        else:
            result[name] = merged(result.get(name), change)
    return result


def _merged_by_type(base: list[Object], changes: list[Object], order: list[str]) -> list[Object]:
    by_type = {condition["type"]: condition for condition in base}
    for change in changes:
        found = {**by_type.get(change["type"], {}), **change}
        by_type[change["type"]] = {name: value for name, value in found.items() if value is not None}
    return sorted(by_type.values(), key=lambda one: order.index(one["type"]) if one["type"] in order else -1)


class FakeHost:
    """A machine whose figures a test sets."""

    def __init__(self, clock: FakeClock | None = None, **changes: Any) -> None:
        self.current = host_snapshot(**changes)
        self.read_at: list[float] = []
        self._clock = clock or FakeClock()

    async def snapshot(self) -> HostSnapshot:
        self.read_at.append(self._clock.elapsed)
        return self.current

    async def glance(self) -> HostSnapshot:
        return self.current


def new_state(process: Process, config: Config) -> NodeState:
    """The state of a node that a process would host."""
    engine = process.engine
    return NodeState(config, engine.monitor, engine.startup, engine.node_decoder, engine.dependencies.clock)


class Recorded:
    """A recorder that only remembers."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, event: Any) -> None:
        self.reasons.append(event.reason)


def host_snapshot(**changes: Any) -> HostSnapshot:
    """A machine with 4 CPUs, 8 GiB of memory and a 100 GiB disk."""
    figures: dict[str, Any] = {
        "cpu_millicores": 4000,
        "online_cpus": frozenset(range(4)),
        "memory_bytes": 8 * GIB,
        "memory_available_bytes": 6 * GIB,
        "nodefs": Filesystem(capacity_bytes=100 * GIB, available_bytes=60 * GIB, inodes=1000, inodes_free=900),
        "pids_max": 32768,
        "pids_used": 300,
        "network": Network(
            interfaces=(interface("lo", "127.0.0.1"), interface("eth0", "192.0.2.10", "2001:db8::10")),
            default_routes=(DefaultRoute(interface="eth0", version=4),),
        ),
        "machine_id": "machine",
        "system_uuid": "system",
        "boot_id": "boot-1",
        "kernel_version": "6.1.0",
        "os_image": "Debian",
    }
    return HostSnapshot(**(figures | changes))


def interface(name: str, *addresses: str, up: bool = True) -> Interface:
    """A network interface."""
    return Interface(name=name, up=up, addresses=tuple(ip_address(address) for address in addresses))


def facts(**changes: Any) -> Facts:
    """Facts about a healthy node that was never seen before."""
    given: dict[str, Any] = {
        "config": Config(node_name="n1"),
        "host": host_snapshot(),
        "observed": {},
        "pressure": frozenset(),
        "problems": (),
        "now": START,
    }
    return Facts(**(given | changes))
