"""How one loop is doing: when it last got through, and what went wrong since."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent.core.goduration import format_seconds
from agent.core.portrait import Renewal
from agent.ports import Clock

OK, LATE, FAILED = "ok", "late", "failed"
_HISTORY_SECONDS = 600
_STUCK_SECONDS = 60.0  # what a loop may keep quiet beyond its deadline: a request, and the pause before the next
_LATE_AFTER = 1.5  # periods: a beat is late when the next one is nearer than the one that was due


class Beat:
    """What a loop tells about its rounds; this one listens to nothing."""

    def ok(self, took_seconds: float) -> None:
        """A round succeeded; the next has to within the deadline."""

    def settled(self) -> None:
        """All is well until a failure is told: there is nothing to do, or something holds by itself."""

    def failed(self, reason: object) -> None:
        """A try failed."""


UNHEARD = Beat()
"""For a loop whose health nobody asks for."""


class Failure(NamedTuple):
    """What went wrong in a loop, and when on the monotonic clock."""

    at_seconds: float
    loop: str
    reason: str


class LoopBeat(Beat):
    """Remembers what a loop tells, and knows when it is overdue."""

    def __init__(
        self, loop: str, clock: Clock, *, deadline_seconds: float, observe: Callable[[str, float], None]
    ) -> None:
        self.loop, self.deadline_seconds = loop, deadline_seconds
        self.failures = 0
        self.failure: Failure | None = None
        self.is_settled = True  # before the start there is nothing to do
        self._clock, self._observe = clock, observe
        self._well_at = self._heard_at = clock.monotonic()

    def begin(self) -> None:
        """From now on the loop has to beat; the first time within one deadline."""
        self.is_settled = False
        self._well_at = self._heard_at = self._clock.monotonic()

    def ok(self, took_seconds: float) -> None:
        """A round succeeded; the next has to within the deadline."""
        self.is_settled = False
        self._well_at = self._heard_at = self._clock.monotonic()
        self._observe(self.loop, took_seconds)

    def settled(self) -> None:
        """All is well until a failure is told."""
        self.is_settled = True
        self._well_at = self._heard_at = self._clock.monotonic()

    def failed(self, reason: object) -> None:
        """A try failed; what was settled has one deadline from now to recover."""
        now = self._clock.monotonic()
        if self.is_settled:
            self.is_settled, self._well_at = False, now
        self._heard_at = now
        self.failures += 1
        self.failure = Failure(now, self.loop, str(reason))

    @property
    def age_seconds(self) -> float:
        """Seconds since all was well; 0 while it is by itself."""
        return 0.0 if self.is_settled else self._clock.monotonic() - self._well_at

    @property
    def fault(self) -> str | None:
        """Why the loop is overdue; None while it is not."""
        if self.age_seconds <= self.deadline_seconds:
            return None
        told = f"no success for {format_seconds(round(self.age_seconds))}"
        is_recent = self.failure and self.failure.at_seconds >= self._well_at
        return f"{told}: {self.failure.reason}" if self.failure and is_recent else told

    @property
    def stall(self) -> str | None:
        """Why the loop seems stuck: it tells neither success nor failure; None while it moves."""
        silence_seconds = self._clock.monotonic() - self._heard_at
        if self.is_settled or silence_seconds <= self.deadline_seconds + _STUCK_SECONDS:
            return None
        return f"nothing heard for {format_seconds(round(silence_seconds))}"


class FailureBeat(LoopBeat):
    """The beat of a loop that tells nothing but failures: it is well again when it has told none for a while."""

    def __init__(
        self,
        loop: str,
        clock: Clock,
        *,
        deadline_seconds: float,
        quiet_seconds: float,
        observe: Callable[[str, float], None],
    ) -> None:
        super().__init__(loop, clock, deadline_seconds=deadline_seconds, observe=observe)
        self._quiet_seconds = quiet_seconds

    def failed(self, reason: object) -> None:
        """A try failed; the first one after a quiet while has one deadline from now to recover."""
        self.is_settled = self.is_settled or self._is_quiet
        super().failed(reason)

    @property
    def age_seconds(self) -> float:
        """Seconds since it began to fail; 0 while it does not."""
        return 0.0 if self._is_quiet else super().age_seconds

    @property
    def _is_quiet(self) -> bool:
        return self._clock.monotonic() - self._heard_at > self._quiet_seconds


class LeaseBeat(LoopBeat):
    """The heartbeat that the cluster sees, with its last ten minutes and the renewals that were missed."""

    def __init__(
        self,
        clock: Clock,
        *,
        deadline_seconds: float,
        period_seconds: float,
        observe: Callable[[str, float], None],
    ) -> None:
        super().__init__("lease", clock, deadline_seconds=deadline_seconds, observe=observe)
        self.period_seconds = period_seconds
        self._renewed_at: float | None = None
        self._missed_before = 0
        self._history: deque[tuple[float, str]] = deque(maxlen=_HISTORY_SECONDS)

    @property
    def renewal_age_seconds(self) -> float | None:
        """Seconds since the lease was last renewed; None before the first time."""
        return None if self._renewed_at is None else self._clock.monotonic() - self._renewed_at

    @property
    def missed(self) -> int:
        """How many renewals did not come in their time."""
        return self._missed_before + self._missed_now

    @property
    def _missed_now(self) -> int:
        return max(0, int(self.age_seconds / self.period_seconds - (_LATE_AFTER - 1)))

    def ok(self, took_seconds: float) -> None:
        """The lease was renewed."""
        missed = self._missed_now
        self._missed_before += missed
        self._renewed_at = self._clock.monotonic()
        super().ok(took_seconds)
        self._remember(LATE if missed else OK)

    def settled(self) -> None:
        """There is no lease to renew."""
        self._missed_before += self._missed_now
        super().settled()

    def failed(self, reason: object) -> None:
        """The lease could not be renewed."""
        super().failed(reason)
        self._remember(FAILED)

    def history(self) -> Sequence[Renewal]:
        """The heartbeats of the last ten minutes, oldest first; within one second, the last."""
        now = self._clock.monotonic()
        return [Renewal(now - at, verdict) for at, verdict in self._history if now - at <= _HISTORY_SECONDS]

    def _remember(self, verdict: str) -> None:
        now = self._clock.monotonic()
        if self._history and int(self._history[-1][0]) == int(now):
            self._history.pop()
        self._history.append((now, verdict))
