"""Log lines that a caller can cause: few of them, and nothing of a request as it came."""

import logging
import traceback
from collections import Counter
from collections.abc import Mapping
from typing import Any

from agent.klog import quoted
from agent.ports import Clock

_PERIOD_SECONDS = 60.0
_LONGEST = 256


class LimitedLog:
    """Logs each phrase, and each unexpected error by the place that raised it, at most once a minute.

    The next line says how many were suppressed. Places are lines of code and phrases are fixed: there are few of both.
    """

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log, self._clock = log, clock
        self._silent_until: dict[str, float] = {}
        self._suppressed = Counter[str]()

    def log(self, level: int, phrase: str, fields: Mapping[str, Any]) -> None:
        """Log a phrase and its fields; strings are escaped and cut."""
        self._write(f"{level} {phrase}", level, phrase, {name: _printable(value) for name, value in fields.items()})

    def unexpected(self, phrase: str, fields: Mapping[str, Any], error: Exception) -> None:
        """Log an error that nobody expected, with its stack."""
        frame = traceback.extract_tb(error.__traceback__)[-1:]
        place = f"{type(error).__name__} {[(one.filename, one.lineno) for one in frame]}"
        self._write(place, logging.ERROR, phrase, {name: _printable(value) for name, value in fields.items()}, error)

    def _write(self, key: str, level: int, phrase: str, fields: dict[str, Any], error: Exception | None = None) -> None:
        if not self._log.isEnabledFor(level):
            return
        now = self._clock.monotonic()
        if now < self._silent_until.get(key, now):
            self._suppressed[key] += 1
            return
        self._silent_until[key] = now + _PERIOD_SECONDS
        if suppressed := self._suppressed.pop(key, 0):
            fields["suppressed"] = suppressed
        self._log.log(level, phrase, fields, exc_info=error, stacklevel=3)


def _printable(value: Any) -> Any:
    """What a log may show of a request: one line, without control characters."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = str(value)
    return (text if text.isprintable() else quoted(text)[1:-1])[:_LONGEST]
