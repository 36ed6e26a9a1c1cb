"""Delays, jitter and pacing: when the next call is due, by a time and a random number that the caller passes."""

from dataclasses import dataclass, replace
from math import floor

_GRID_SECONDS = 0.2
_EPSILON = 1e-6  # a moment on the grid stays where it is


def jittered(seconds: float, factor: float, rand: float) -> float:
    """Return a period stretched by up to `factor`, so that nodes spread; `rand` is in [0, 1)."""
    return seconds * (1 + factor * rand)


def coalesced(now_seconds: float, earliest: float, latest: float) -> float:
    """Return a delay between these two after which many fall due at once: each wake-up of the process costs.

    A period is random within its jitter; within it, the moment is rounded down to a fifth of a second.
    """
    rounded = floor((now_seconds + latest) / _GRID_SECONDS + _EPSILON) * _GRID_SECONDS - now_seconds
    return min(rounded, latest) if rounded > earliest else latest


class TokenBucket:
    """Limits a rate, and allows a burst, as client-go's flow control does; the caller passes the time."""

    def __init__(self, per_second: float, at_once: int) -> None:
        self._per_second, self._at_once = per_second, at_once
        self._left, self._at_seconds = float(at_once), 0.0  # below zero, others are waiting

    def wait_seconds(self, now_seconds: float) -> float:
        """Take a token. Returns the seconds until the caller may go on."""
        earned = (now_seconds - self._at_seconds) * self._per_second
        self._left, self._at_seconds = min(self._at_once, self._left + earned) - 1, now_seconds
        return max(0.0, -self._left / self._per_second)


@dataclass(frozen=True, slots=True)
class ReportSchedule:
    """When an unchanged status is sent again."""

    period_seconds: float
    last_seconds: float | None = None  # on the monotonic clock; None before the first report
    delay_seconds: float = 0.0

    def due(self, now_seconds: float) -> bool:
        """Return whether the status must be sent although nothing changed."""
        if self.last_seconds is None:
            return True
        return now_seconds - self.last_seconds >= self.period_seconds + self.delay_seconds

    def after(self, now_seconds: float, *, changed: bool, rand: float) -> "ReportSchedule":
        """Return the schedule after a report: a change or a first report spreads the next one by ±50 %."""
        spread = changed or self.last_seconds is None
        return replace(
            self, last_seconds=now_seconds, delay_seconds=self.period_seconds * (rand - 0.5) if spread else 0.0
        )
