"""Bounded waiting for what a cluster does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T | None], *, within: float = 120.0, every: float = 0.1) -> T:
    """The first truthy answer of `check`; if none comes in time, an AssertionError that tells the last one.

    The deadline is for a machine that is four times slower than one would wait for; it costs nothing where all is well.
    An exception is an answer too, and not a truthy one: most things cannot be read before they exist.
    """
    deadline = time.monotonic() + within
    while True:
        last, failure = _answer(check)
        if failure is None and last:
            return last
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within} s; the last answer was {failure or last!r}") from failure
        time.sleep(every)


def _answer(check: Callable[[], T | None]) -> tuple[T | None, Exception | None]:
    try:
        return check(), None
    except Exception as failure:
        return None, failure
