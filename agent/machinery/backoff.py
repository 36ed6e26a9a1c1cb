"""How long to leave alone what failed: state of whoever retries, never a sleep."""

import random

from agent.core.schedule import jittered
from agent.ports import ApiError, Clock, Rand

ASKED_JITTER = 0.5  # a busy server asks all its clients to wait for the same number of seconds


class Backoff:
    """Doubles the delay from the first to the longest one, and never undercuts what the API server asks for."""

    __slots__ = (
        "_clock",
        "_failures",
        "_first_seconds",
        "_jitter",
        "_most_seconds",
        "_rand",
        "_until_seconds",
        "interval_seconds",
        "is_asked_for",
    )

    def __init__(
        self,
        clock: Clock,
        first_seconds: float,
        most_seconds: float,
        *,
        jitter: float = 0.0,
        rand: Rand = random.random,
    ) -> None:
        self._clock = clock
        self._first_seconds = first_seconds
        self._most_seconds = most_seconds
        self._jitter = jitter
        self._rand = rand
        self._failures = 0
        self._until_seconds = 0.0
        self.interval_seconds = 0.0
        """The last delay, without jitter."""
        self.is_asked_for = False
        """Whether the API server asked for the last delay: then nothing cuts it short."""

    @property
    def left_seconds(self) -> float:
        """What is left of the last delay."""
        return max(0.0, self._until_seconds - self._clock.monotonic())

    def next(self, error: ApiError) -> float:
        """Return the seconds until the next try, after one that failed with this error."""
        own_seconds = min(self._first_seconds * 2.0 ** min(self._failures, 30), self._most_seconds)
        asked_seconds = error.retry_after_seconds or 0.0
        self._failures += 1
        self.is_asked_for = asked_seconds >= own_seconds
        self.interval_seconds = max(own_seconds, asked_seconds)
        jitter = ASKED_JITTER if self.is_asked_for else self._jitter
        delay_seconds = jittered(self.interval_seconds, jitter, self._rand())
        self._until_seconds = self._clock.monotonic() + delay_seconds
        return delay_seconds

    def cut_short(self) -> None:
        """End the delay, unless the API server asked for it."""
        if not self.is_asked_for:
            self._until_seconds = 0.0

    def reset(self) -> None:
        """Begin again with the first delay, after a success."""
        self._failures = 0
        self._until_seconds = 0.0
        self.is_asked_for = False
