"""Who wants attention, and when."""

import asyncio
import heapq

from agent.ports import Clock

_SLACK = 100


class Agenda:
    """Hands out names when they are due; each only once at a time, and again if it was called meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._order: list[tuple[float, str]] = []
        self._busy: set[str] = set()
        self._news = asyncio.Event()

    @property
    def waiting(self) -> int:
        """How many are due, and in nobody's hands."""
        now = self._clock.monotonic()
        return sum(at <= now for at in self._due.values())

    def call(self, name: str, *, in_seconds: float = 0.0) -> None:
        """Ask for attention; the earliest of several calls counts."""
        at = self._clock.monotonic() + in_seconds
        if at < self._due.get(name, float("inf")):
            self._due[name] = at
            self._enter(at, name)

    def forget(self, name: str) -> None:
        """Nobody by this name wants anything any more."""
        self._due.pop(name, None)

    async def take(self) -> str:
        """The next name that is due; whoever takes it says when it is done."""
        while True:
            name = self._next()
            if name is not None:
                self._busy.add(name)
                return name
            self._news.clear()
            seconds = self._order[0][0] - self._clock.monotonic() if self._order else None
            await (self._news.wait() if seconds is None else self._clock.wait(self._news, seconds))

    def done(self, name: str) -> None:
        """This one has had its attention."""
        self._busy.discard(name)
        if name in self._due:
            self._enter(self._due[name], name)

    def _enter(self, at: float, name: str) -> None:
        heapq.heappush(self._order, (at, name))
        if len(self._order) > 2 * len(self._due) + _SLACK:  # most of them were called earlier, or forgotten
            self._order = [(at, name) for name, at in self._due.items()]
            heapq.heapify(self._order)
        self._news.set()

    def _next(self) -> str | None:
        now = self._clock.monotonic()
        while self._order and self._order[0][0] <= now:
            at, name = heapq.heappop(self._order)
            if self._due.get(name) == at and name not in self._busy:
                del self._due[name]
                return name
        return None
