"""A log handler that writes repeated lines as one line with a count."""

import copy
import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

_SECONDS = 1.0

_Key = tuple[int, str, int, str, str]


@dataclass(slots=True)
class _Line:
    """A line that was written, and what came of it since then: the last repeat, and their number."""

    written_at: float
    repeats: int = 0
    last: logging.LogRecord | None = None


class RepeatsHandler(logging.StreamHandler[TextIO]):
    """Writes a line at once; what is repeated within a second becomes one line with `count` after that second.

    The lines without a count, and the counts of the others, add up to what was logged. A traceback is never held back.
    """

    def __init__(self, stream: TextIO, timer: type[threading.Timer] = threading.Timer) -> None:
        super().__init__(stream)
        self._new_timer = timer
        self._lines: dict[_Key, _Line] = {}  # in the order in which they were written
        self._timer: threading.Timer | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it; logging has acquired the lock."""
        self._write_counts(record.created)
        key = _key(record)
        line = None if record.exc_info else self._lines.get(key)
        if line is None:
            super().emit(record)
            self._lines[key] = _Line(record.created)
            return
        line.repeats += 1
        line.last = record
        self._start_timer()

    def close(self) -> None:
        """Write what was only counted so far, as at the end of the process."""
        self.acquire()
        try:
            if self._timer is not None:
                self._timer.cancel()
            for line in self._lines.values():
                self._write_count(line, time.time())
            self._lines.clear()
        finally:
            self.release()
        super().close()

    def _write_counts(self, now: float) -> None:
        """Write the counts of lines whose second is over; with each, another second begins."""
        while self._lines:
            key, line = next(iter(self._lines.items()))
            if 0 <= now - line.written_at < _SECONDS:  # a clock that was set back ends the second, too
                return
            del self._lines[key]
            if line.repeats:
                self._write_count(line, now)
                self._lines[key] = _Line(now)

    def _write_count(self, line: _Line, now: float) -> None:
        if line.last is not None:
            super().emit(_with_count(line.last, line.repeats, now))

    def _start_timer(self) -> None:
        """Have the count written even if nothing else is ever logged."""
        if self._timer is None:
            timer = self._new_timer(_SECONDS, self._on_timer)
            timer.daemon = True
            with suppress(RuntimeError):  # no thread can be started any more: the next line writes the count
                timer.start()
                self._timer = timer

    def _on_timer(self) -> None:
        self.acquire()
        try:
            self._timer = None
            self._write_counts(time.time())
            if any(line.repeats for line in self._lines.values()):
                self._start_timer()
        finally:
            self.release()


def _key(record: logging.LogRecord) -> _Key:
    return record.levelno, record.pathname, record.lineno, str(record.msg), repr(record.args)


def _with_count(record: logging.LogRecord, count: int, now: float) -> logging.LogRecord:
    counted = copy.copy(record)
    fields = record.args if isinstance(record.args, dict) else {}
    if not fields:  # of a library, which formats its own message
        counted.msg = record.getMessage() if record.args else record.msg
    counted.args = {**fields, "count": count}
    counted.created = now
    return counted
