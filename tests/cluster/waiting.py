"""Bounded waiting for what a cluster does in its own time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(
    check: Callable[[], T | None], holds: Callable[[T], object] = bool, *, within: float = 120.0, every: float = 0.1
) -> T:
    """The first answer of `check` that holds; if none comes in time, an AssertionError that tells the last one.

    The deadline is for a machine that is four times slower than one would wait for; it costs nothing where all is well.
    An exception is an answer too, and never the right one: most things cannot be read before they exist.
    """
    deadline = time.monotonic() + within
    while True:
        failure, last = None, None
        try:
            last = check()
            if last is not None and holds(last):
                return last
        except Exception as problem:
            failure = problem
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {within} s; the last answer was {failure or last!r}") from failure
        time.sleep(every)
