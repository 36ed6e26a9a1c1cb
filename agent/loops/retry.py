"""Retry policies as named values; the only user of tenacity."""

from collections.abc import Callable

from tenacity import AsyncRetrying, RetryCallState
from tenacity.retry import retry_if_exception_type
from tenacity.stop import stop_after_attempt
from tenacity.wait import wait_base, wait_exponential, wait_fixed

from agent.loops.weather import Weather
from agent.ports import ApiError, Unavailable, Untrusted

OnFailure = Callable[[ApiError, float], None]
"""Told of each failed try: what went wrong, and the seconds until the next one."""

_PATIENCE_JITTER = 0.5  # a busy server tells all its clients the same number of seconds


def watching(weather: Weather, on_failure: OnFailure) -> AsyncRetrying:
    """A watch is the scout: it tries often while an outage is young, ever less often later, without end.

    client-go doubles from 0.8 s to 30 s at once, but for five watches; ours is one, and wakes whoever waits elsewhere.
    """
    return _without_end(weather, _Scouting(), on_failure)


def following(weather: Weather, on_failure: OnFailure) -> AsyncRetrying:
    """A watch beside the scout has client-go's patience: 0.8 s, doubling up to 30 s, or until the scout is through."""
    return _without_end(weather, wait_exponential(multiplier=0.8, max=30), on_failure)


def delivering_event(weather: Weather) -> AsyncRetrying:
    """An event is tried twelve times, ten seconds apart, and only while nobody answers."""
    pause = _Pause(weather, wait_fixed(10.0), 0.0, first_by_chance=True)
    return AsyncRetrying(
        sleep=pause.sleep,
        wait=pause,
        stop=stop_after_attempt(12),
        retry=retry_if_exception_type(Unavailable),
        reraise=True,
    )


def _without_end(weather: Weather, backoff: wait_base, on_failure: OnFailure) -> AsyncRetrying:
    pause = _Pause(weather, backoff, 1.0)
    return AsyncRetrying(
        sleep=pause.sleep,
        wait=pause,
        retry=retry_if_exception_type(ApiError),
        # The interval that is told is the kubelet's, without the jitter.
        before_sleep=lambda state: on_failure(_error(state), max(backoff(state), _patience(state))),
        reraise=True,
    )


class _Scouting(wait_base):
    """A part of the outage so far, but between 0.2 s and 30 s; not less than 0.7 s where a person has to act."""

    def __call__(self, retry_state: RetryCallState) -> float:
        least = 0.7 if isinstance(_error(retry_state), Untrusted) else 0.2
        return min(max(least, retry_state.idle_for / 120), 30.0)


class _Pause(wait_base):
    """Waits as another policy says, but for chance, and never less than the server asked for."""

    def __init__(self, weather: Weather, backoff: wait_base, jitter: float, *, first_by_chance: bool = False) -> None:
        self._weather, self._backoff, self._jitter = weather, backoff, jitter
        self._first_by_chance = first_by_chance
        self._asked = False

    def __call__(self, retry_state: RetryCallState) -> float:
        asked_seconds, own_seconds = _patience(retry_state), self._backoff(retry_state)
        self._asked = asked_seconds > 0
        if asked_seconds >= own_seconds:
            return self._weather.spread(asked_seconds, _PATIENCE_JITTER)
        if self._first_by_chance and retry_state.attempt_number == 1:
            return self._weather.spread(own_seconds, 1.0) - own_seconds
        return self._weather.spread(own_seconds, self._jitter)

    async def sleep(self, seconds: float) -> None:
        """Pause; better weather ends it early, unless it was the server who asked for patience."""
        await (self._weather.sit_out if self._asked else self._weather.wait_out)(seconds)


def _patience(state: RetryCallState) -> float:
    return _error(state).retry_after_seconds or 0.0


def _error(state: RetryCallState) -> ApiError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, ApiError):
        raise TypeError(f"only an ApiError is ever retried, not {error!r}")
    return error
