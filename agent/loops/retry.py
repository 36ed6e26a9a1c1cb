"""Retry policies as named values; the only user of tenacity."""

from collections.abc import Callable

from tenacity import AsyncRetrying, RetryCallState
from tenacity.retry import retry_if_exception_type
from tenacity.stop import stop_after_attempt
from tenacity.wait import wait_base, wait_exponential

from agent.ports import ApiError, Clock, Rand, Unavailable

OnFailure = Callable[[ApiError, float], None]
"""Told of each failed try: what went wrong, and the seconds until the next one."""


def registering(clock: Clock, on_failure: OnFailure) -> AsyncRetrying:
    """Kubelet's patience when registering: 0.1 s, doubling up to 7 s, without end."""
    return _without_end(clock, first_seconds=0.1, on_failure=on_failure)


def ensuring_lease(clock: Clock, on_failure: OnFailure) -> AsyncRetrying:
    """Kubelet's patience for its lease: 0.2 s, doubling up to 7 s, without end."""
    return _without_end(clock, first_seconds=0.2, on_failure=on_failure)


def five_tries(clock: Clock, on_failure: OnFailure) -> AsyncRetrying:
    """A heartbeat is tried five times at once; after that the next tick is worth more."""
    return AsyncRetrying(
        sleep=clock.sleep,
        stop=stop_after_attempt(5),
        retry=retry_if_exception_type(ApiError),
        after=lambda state: on_failure(_error(state), 0.0),
        reraise=True,
    )


def delivering_event(clock: Clock, rand: Rand) -> AsyncRetrying:
    """An event is tried twelve times, ten seconds apart, and only while nobody answers."""
    return AsyncRetrying(
        sleep=clock.sleep,
        wait=lambda state: 10.0 * (rand() if state.attempt_number == 1 else 1.0),
        stop=stop_after_attempt(12),
        retry=retry_if_exception_type(Unavailable),
        reraise=True,
    )


def _without_end(clock: Clock, *, first_seconds: float, on_failure: OnFailure) -> AsyncRetrying:
    return AsyncRetrying(
        sleep=clock.sleep,
        wait=_HeedingRetryAfter(wait_exponential(multiplier=first_seconds, max=7)),
        retry=retry_if_exception_type(ApiError),
        before_sleep=lambda state: on_failure(_error(state), state.upcoming_sleep),
        reraise=True,
    )


class _HeedingRetryAfter(wait_base):
    """Waits as another policy says, but never less than the server asked for."""

    def __init__(self, backoff: wait_base) -> None:
        self._backoff = backoff

    def __call__(self, retry_state: RetryCallState) -> float:
        return max(self._backoff(retry_state), _error(retry_state).retry_after_seconds or 0.0)


def _error(state: RetryCallState) -> ApiError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, ApiError):
        raise TypeError(f"only an ApiError is ever retried, not {error!r}")
    return error
