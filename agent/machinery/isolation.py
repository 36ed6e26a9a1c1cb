"""Keep an error that nobody expected to the one thing that it happened to: log it, count it, try that again later."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from agent.core.errors import ConfigError
from agent.core.metrics import Counter, Registry
from agent.core.text import one_line
from agent.core.times import format_seconds
from agent.machinery.health import LONGEST_PAUSE_SECONDS, LoopHealth
from agent.ports import Clock, NodeDeleted, StartError

log = logging.getLogger(__name__)

FATAL = (StartError, NodeDeleted, ConfigError)
"""Errors that end the process on purpose: a person must act, or the settings say so."""

_STACK_SECONDS = 300.0  # how often the stack of one place in the code is logged
_BURST_LINES, _LINE_SECONDS = 20.0, 5.0  # of one loop: so many lines at once, then one in so many seconds
_MOST_CHARACTERS = 500

_Place = tuple[type[BaseException], str, int]


class Pauses(NamedTuple):
    """How long something that failed is left alone: the first time, and at most; in between it doubles."""

    first_seconds: float = 1.0
    most_seconds: float = 300.0


CONTROLLER_PAUSES = Pauses(most_seconds=LONGEST_PAUSE_SECONDS)


class _Failing(NamedTuple):
    """How often one thing failed in a row, and when it may be tried again."""

    times: int
    retry_at: float


class Attempt:
    """How a piece of work went."""

    __slots__ = ("retry_seconds",)

    def __init__(self) -> None:
        self.retry_seconds: float | None = None  # None: nothing unexpected happened


class UnexpectedErrors:
    """The log and the count of all loops of a process: every error is counted, the log is not flooded."""

    def __init__(self, clock: Clock, metrics: Registry, *, node_name: str = "") -> None:
        self._total = metrics.register(
            Counter(
                "fake_kubelet_unexpected_errors_total",
                "Errors that no loop expected; what failed is tried again, and nothing else ends.",
                ("loop",),
            )
        )
        self._clock = clock
        self._node_name = node_name  # logged for a loop that belongs to the whole process
        self._stacks: dict[_Place, float] = {}  # when the stack of a place was last logged
        self._lines: dict[str, tuple[float, float]] = {}  # loop → lines that it may log, as of a moment

    def isolation(
        self,
        loop: str,
        health: LoopHealth | None = None,
        *,
        size: Callable[[], int] = lambda: 1,
        pauses: Pauses = Pauses(),  # noqa: B008  a value
    ) -> "Isolation":
        """Isolation for the `size` things that one loop works on; the loop fails while all of them do."""
        self._total.add(loop, amount=0)  # so that the first error is an increase
        return Isolation(loop, self, self._clock, health, size=size, pauses=pauses)

    def isolated(
        self,
        loop: str,
        run: Callable[[], Awaitable[None]],
        health: LoopHealth | None = None,
        pauses: Pauses = Pauses(most_seconds=LONGEST_PAUSE_SECONDS),  # noqa: B008  a value
    ) -> "IsolatedLoop":
        """A loop that is run again after a pause when it failed."""
        return IsolatedLoop(loop, run, self.isolation(loop, health, pauses=pauses), self._clock)

    def report(
        self, loop: str, node_name: str, error: Exception, about: Mapping[str, object], retry_seconds: float
    ) -> None:
        """Count an error, and log it with its stack as far as the log can bear it."""
        self._total.add(loop)
        if not self._may_log(loop):
            return
        place = _place(error)
        is_new = self._clock.monotonic() >= self._stacks.get(place, -_STACK_SECONDS) + _STACK_SECONDS
        if is_new:
            self._stacks[place] = self._clock.monotonic()
        log.error(
            "Unexpected error, will retry",
            {
                "err": _on_one_line(error),
                "loop": loop,
                "node": node_name or self._node_name,
                **about,
                "retryAfter": format_seconds(retry_seconds),
            },
            exc_info=error if is_new else None,
        )

    def _may_log(self, loop: str) -> bool:
        now = self._clock.monotonic()
        lines, at = self._lines.get(loop, (_BURST_LINES, now))
        lines = min(_BURST_LINES, lines + (now - at) / _LINE_SECONDS)
        may = lines >= 1
        self._lines[loop] = (lines - 1 if may else lines, now)
        return may


class Isolation:
    """Lets each of the things that a loop works on fail for itself, with a backoff of its own."""

    __slots__ = ("_clock", "_errors", "_failing", "_health", "_loop", "_pauses", "_size")

    def __init__(
        self,
        loop: str,
        errors: UnexpectedErrors,
        clock: Clock,
        health: LoopHealth | None,
        *,
        size: Callable[[], int],
        pauses: Pauses,
    ) -> None:
        self._loop = loop
        self._errors = errors
        self._clock = clock
        self._health = health
        self._size = size
        self._pauses = pauses
        self._failing: dict[str, _Failing] | None = None  # a fleet has thousands of these, and few that fail

    @contextmanager
    def attempt(self, key: str = "", **about: object) -> Iterator[Attempt]:
        """Do within it what may fail for itself; the log names the thing by `about`.

        Cancellation and errors that end the process on purpose pass through. A task that is being cancelled ends,
        whatever it failed with last.
        """
        attempt = Attempt()
        try:
            yield attempt
        except Exception as error:
            if _is_fatal(error):
                raise
            attempt.retry_seconds = self._failed(key, error, about)
            if _is_being_cancelled():
                raise asyncio.CancelledError from error
        else:
            self.forget(key)

    def pause_seconds(self, key: str = "") -> float:
        """How long something that failed is to be left alone still."""
        failing = self._failing.get(key) if self._failing else None
        return max(0.0, failing.retry_at - self._clock.monotonic()) if failing else 0.0

    def forget(self, key: str = "") -> None:
        """Something has succeeded, or is not there any more: the next failure is its first."""
        if self._failing:
            self._failing.pop(key, None)
            if not self._failing or len(self._failing) < self._size():
                self._settled()

    def _failed(self, key: str, error: Exception, about: Mapping[str, object]) -> float:
        self._failing = self._failing or {}
        now, before = self._clock.monotonic(), self._failing.get(key)
        is_again = before is not None and now <= before.retry_at + self._pauses.most_seconds
        times = before.times if before and is_again else 0
        pause = min(self._pauses.first_seconds * 2.0 ** min(times, 30), self._pauses.most_seconds)
        self._failing[key] = _Failing(times + 1, now + pause)
        if len(self._failing) < self._size():
            self._settled()
        elif self._health:
            self._health.failed(f"unexpected error: {_on_one_line(error)}")
        self._errors.report(self._loop, self._health.node_name if self._health else "", error, about, pause)
        return pause

    def _settled(self) -> None:
        if self._health:
            self._health.settled()


class IsolatedLoop:
    """A loop that ends nothing but itself, and not for long."""

    def __init__(self, name: str, run: Callable[[], Awaitable[None]], isolation: Isolation, clock: Clock) -> None:
        self.name = name
        self._run = run
        self._isolation = isolation
        self._clock = clock

    async def run(self) -> None:
        """Run the loop until its work is done or it is cancelled."""
        while True:
            with self._isolation.attempt() as attempt:
                await self._run()
            if attempt.retry_seconds is None:
                return
            await self._clock.sleep(attempt.retry_seconds)


def _is_fatal(error: Exception) -> bool:
    return isinstance(error, FATAL) or (isinstance(error, ExceptionGroup) and error.subgroup(FATAL) is not None)


def _on_one_line(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}", _MOST_CHARACTERS)


def _is_being_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # outside of the event loop
        return False
    return task is not None and task.cancelling() > 0


def _place(error: BaseException) -> _Place:
    """Where an error was raised: there are only so many such places, whatever others send."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    traceback = error.__traceback__
    while traceback and traceback.tb_next:
        traceback = traceback.tb_next
    if traceback is None:
        return type(error), "", 0
    return type(error), traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
