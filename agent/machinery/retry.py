"""Retry policies as named values; the only user of tenacity."""

from collections.abc import Callable

from tenacity import AsyncRetrying, RetryCallState
from tenacity.retry import retry_if_exception_type
from tenacity.wait import wait_base, wait_exponential

from agent.core.schedule import jittered
from agent.machinery.backoff import ASKED_JITTER
from agent.machinery.dependencies import Dependencies
from agent.ports import ApiError, Untrusted

OnFailure = Callable[[ApiError], None]
"""Called after each try that failed."""

_JITTER = 1.0


def watching(dependencies: Dependencies, on_failure: OnFailure, *, is_primary: bool) -> AsyncRetrying:
    """Open a watch again, without end. The primary one tries often while an outage is young, and less often later.

    client-go doubles from 0.8 s to 30 s at once, but for five watches; of ours one is primary, and wakes the others.
    """
    backoff = _PrimaryBackoff() if is_primary else wait_exponential(multiplier=0.8, max=30)
    pause = _Pause(dependencies, backoff)
    return AsyncRetrying(
        sleep=pause.sleep,
        wait=pause,
        retry=retry_if_exception_type(ApiError),
        before_sleep=lambda state: on_failure(_error(state)),
        reraise=True,
    )


class _PrimaryBackoff(wait_base):
    """A part of the outage so far, but between 0.2 s and 30 s; not less than 0.7 s where a person has to act."""

    def __call__(self, retry_state: RetryCallState) -> float:
        least = 0.7 if isinstance(_error(retry_state), Untrusted) else 0.2
        return min(max(least, retry_state.idle_for / 120), 30.0)


class _Pause(wait_base):
    """Waits as another policy says, with jitter, and never less than the server asked for."""

    def __init__(self, dependencies: Dependencies, backoff: wait_base) -> None:
        self._clock = dependencies.clock
        self._connectivity = dependencies.connectivity
        self._rand = dependencies.rand
        self._backoff = backoff
        self._is_asked_for = False

    def __call__(self, retry_state: RetryCallState) -> float:
        asked_seconds, own_seconds = _patience(retry_state), self._backoff(retry_state)
        self._is_asked_for = asked_seconds > 0
        if asked_seconds >= own_seconds:
            return jittered(asked_seconds, ASKED_JITTER, self._rand())
        return jittered(own_seconds, _JITTER, self._rand())

    async def sleep(self, seconds: float) -> None:
        """Pause until the API server can be reached again, or for the whole time if it asked for that."""
        await (self._clock.sleep if self._is_asked_for else self._connectivity.wait_or_recovered)(seconds)


def _patience(state: RetryCallState) -> float:
    return _error(state).retry_after_seconds or 0.0


def _error(state: RetryCallState) -> ApiError:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, ApiError):
        raise TypeError(f"only an ApiError is ever retried, not {error!r}")
    return error
