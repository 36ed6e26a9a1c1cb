"""Starts the nodes of a fleet as fast as the API server takes them."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from agent.core.pacing import AdaptiveLimit
from agent.node import Node
from agent.ports import Clock

_FIRST, _LEAST, _MOST = 64, 4, 512  # nodes that start at once
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0  # a node that is not up by then holds up no other
_SLOW_SECONDS = 5.0  # an API server that takes so long for an answer is overrun; a lease has ten
_TOO_MANY_REQUESTS, _SERVER_ERROR = 429, 500


class Starter:
    """Starts each node at its time, and no more at once than the API server answers well.

    None starts while leases wait to be renewed: nodes that live go before those to come.
    """

    def __init__(self, clock: Clock, is_behind: Callable[[], bool] = lambda: False) -> None:
        self._is_behind = is_behind
        self.limit = AdaptiveLimit(_FIRST, least=_LEAST, most=_MOST)
        self._clock = clock
        self._waiting: list[tuple[float, int, Node]] = []
        self._sequence = count()
        self._starting: dict[Node, float] = {}  # since when
        self._added = asyncio.Event()

    def add(self, node: Node, delay_seconds: float) -> None:
        """Start a node after a delay."""
        heapq.heappush(self._waiting, (self._clock.monotonic() + delay_seconds, next(self._sequence), node))
        self._added.set()

    def discard(self, node: Node) -> None:
        """Do not start a node any more."""
        self._waiting = [entry for entry in self._waiting if entry[2] is not node]
        heapq.heapify(self._waiting)
        self._starting.pop(node, None)

    @property
    def waiting(self) -> int:
        """How many nodes have not been started yet."""
        return len(self._waiting)

    def observe(self, status: int | None, took_seconds: float) -> None:
        """Take in the status of an answer of the API server, None for none, and how long it took."""
        is_refused = status is None or status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
        if self._starting and (is_refused or took_seconds > _SLOW_SECONDS):
            self.limit.overrun(self._clock.monotonic())

    async def run(self) -> None:
        """Start nodes until cancelled."""
        while True:
            now = self._clock.monotonic()
            for node, since in [*self._starting.items()]:
                if node.is_up:
                    self.limit.succeeded()
                if node.is_up or now - since > _PATIENCE_SECONDS:
                    del self._starting[node]
            while self._may_start(now):
                node = heapq.heappop(self._waiting)[2]
                self._starting[node] = now
                node.start()
            await self._pause(now)

    def _may_start(self, now: float) -> bool:
        is_due = bool(self._waiting) and self._waiting[0][0] <= now
        return is_due and len(self._starting) < self.limit.limit and not self._is_behind()

    async def _pause(self, now: float) -> None:
        """Wait until there is something to do: a look at the nodes that start, or the time of the next one."""
        self._added.clear()
        if self._starting or (self._waiting and self._waiting[0][0] <= now):
            await self._clock.sleep(_LOOK_SECONDS)
        elif self._waiting:
            await self._clock.wait(self._added, self._waiting[0][0] - now)
        else:
            await self._added.wait()
