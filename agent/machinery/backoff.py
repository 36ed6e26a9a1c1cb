"""How long to leave alone what failed: state of whoever retries, never a sleep."""

import random

from agent.core.schedule import jittered
from agent.ports import ApiError, Rand

_ASKED_JITTER = 0.5  # a busy server tells all its clients the same number of seconds


class Backoff:
    """Doubles the delay from the first to the longest one, and never undercuts what the API server asks for."""

    def __init__(
        self, first_seconds: float, most_seconds: float, *, jitter: float = 0.0, rand: Rand = random.random
    ) -> None:
        self._first_seconds = first_seconds
        self._most_seconds = most_seconds
        self._jitter = jitter
        self._rand = rand
        self._failures = 0
        self.interval_seconds = 0.0
        """The last delay, without chance."""
        self.is_asked_for = False
        """Whether the API server asked for the last delay: then nothing may cut it short."""

    def next(self, error: ApiError) -> float:
        """Return the seconds until the next try, after one that failed with this error."""
        own_seconds = min(self._first_seconds * 2.0 ** min(self._failures, 30), self._most_seconds)
        asked_seconds = error.retry_after_seconds or 0.0
        self._failures += 1
        self.is_asked_for = asked_seconds >= own_seconds
        self.interval_seconds = max(own_seconds, asked_seconds)
        jitter = _ASKED_JITTER if self.is_asked_for else self._jitter
        return jittered(self.interval_seconds, jitter, self._rand())

    def reset(self) -> None:
        """Begin again with the first delay."""
        self._failures = 0
        self.is_asked_for = False
