"""A queue of keys by the time at which each is due, as client-go's delaying queue."""

import asyncio
import heapq
from collections.abc import Hashable
from itertools import count
from math import inf
from typing import Generic, TypeVar
from weakref import WeakSet

from agent.ports import Clock

K = TypeVar("K", bound=Hashable)

_SLACK = 100


class WorkQueue(Generic[K]):
    """Hands out keys when they are due. One worker has a key at a time; a key that is added meanwhile comes again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []  # with entries that are out of date, which `_pop` skips
        self._sequence = count()  # keys of one moment come in the order in which they were added
        self._processing: set[K] = set()
        self._retired: WeakSet[K] = WeakSet()
        self._added = asyncio.Event()
        self._turn = asyncio.Lock()  # one worker waits for the next key, the others for their turn

    def has_due(self, count: int, *, late_seconds: float = 0.0) -> bool:
        """Whether at least so many keys have been due for so long, and wait for a worker."""
        now, places, due = self._clock.monotonic() - late_seconds, [0], set[K]()
        while places and len(due) < count:  # from the top of the heap down, as far as entries are due
            place = places.pop()
            if place < len(self._heap) and self._heap[place][0] <= now:
                at, _, key = self._heap[place]
                if self._due.get(key) == at:
                    due.add(key)
                places += [2 * place + 1, 2 * place + 2]
        return len(due) >= count

    def add(self, key: K) -> None:
        """Hand out a key as soon as a worker is free."""
        self.add_after(key, 0.0)

    def add_after(self, key: K, seconds: float) -> None:
        """Hand out a key after a delay; if it waits already, the earlier time counts."""
        at = self._clock.monotonic() + seconds
        if at < self._due.get(key, inf) and key not in self._retired:
            self._due[key] = at
            self._push(key, at)

    def discard(self, key: K) -> None:
        """Do not hand out a key any more, unless it is added again."""
        self._due.pop(key, None)

    def retire(self, key: K) -> None:
        """Never hand out a key again, whoever adds it."""
        self._retired.add(key)
        self.discard(key)

    async def get(self) -> K:
        """Wait for the next key; the worker that gets it calls `done` afterwards."""
        async with self._turn:
            while (key := self._pop()) is None:
                self._added.clear()
                if self._heap:
                    await self._clock.wait(self._added, self._heap[0][0] - self._clock.monotonic())
                else:
                    await self._added.wait()
            self._processing.add(key)
            return key

    def done(self, key: K) -> None:
        """A worker has finished with a key."""
        self._processing.discard(key)
        if key in self._due:
            self._push(key, self._due[key])

    def _push(self, key: K, at: float) -> None:
        heapq.heappush(self._heap, (at, next(self._sequence), key))
        if len(self._heap) > 2 * len(self._due) + _SLACK:  # most entries are out of date
            self._heap = [(at, next(self._sequence), key) for key, at in self._due.items()]
            heapq.heapify(self._heap)
        if self._heap[0][0] >= at:  # whoever waits for the first one waits no longer for a later one
            self._added.set()

    def _pop(self) -> K | None:
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == at and key not in self._processing:
                del self._due[key]
                return key
        return None
