"""Log lines in klog's text or JSON format, from the standard logging module.

A call is a fixed phrase and a dict: `log.info("Successfully registered node", {"node": name})`.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any, Literal, TextIO

from agent.core.text import one_line
from agent.repeats import RepeatsHandler

# klog's V levels as logging levels: `-v N` shows everything down to INFO - N.
V1, V2, V3, V4, V5 = (logging.INFO - verbosity for verbosity in (1, 2, 3, 4, 5))
_MAX_VERBOSITY = logging.INFO - 1  # logging has no level below 1

Format = Literal["text", "json", "plain"]
"""The kubelet's formats for a daemon, and ours for other commands."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES["\v"] = "\\v"
_MAX_TRACEBACK_LINES = 80
_MAX_TRACEBACK_CHARACTERS = 500  # of a line


class Unquoted(str):
    """A phrase that is printed as it is, as klog's own Infof does; structured lines quote theirs."""

    __slots__ = ()


class BareFormatter(logging.Formatter):
    """`file:line] "message" key="value"`: a line for the journal, which records time and process itself."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line for a record, except for tracebacks and values of several lines."""
        fields = _error_first(record)
        phrase = record.msg if isinstance(record.msg, Unquoted) else quoted(_phrase(record, fields))
        line = f"{record.filename}:{record.lineno}] {phrase}"
        for key, value in fields.items():
            line += f" {key}={_value(value)}"
        return f"{line}\n{_stack(record.exc_info)}" if record.exc_info else line


class KlogFormatter(BareFormatter):
    """`Lmmdd hh:mm:ss.uuuuuu PPPPPPP file:line] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a kubelet prints it on stderr."""
        letter = "E" if record.levelno >= logging.ERROR else "W" if record.levelno >= logging.WARNING else "I"
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        return f"{letter}{at:%m%d %H:%M:%S.%f} {os.getpid():7d} {super().format(record)}"


class JournalFormatter(logging.Formatter):
    """Adds the journal's priority to the lines of another formatter."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Return every line with its priority: the journal makes each an entry of its own."""
        priority = 3 if record.levelno >= logging.ERROR else 4 if record.levelno >= logging.WARNING else 6
        text = self._inner.format(record)
        return "\n".join(f"<{priority}>{line}" for line in text.split("\n"))


class JsonFormatter(logging.Formatter):
    """`{"ts":1794794462998.8457,"caller":"controllers/lease.py:42","msg":"…","v":0,"key":"value"}`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one object; an error has no `v`, as in a kubelet."""
        fields = _fields(record)
        entry: dict[str, Any] = {
            "ts": record.created * 1000,
            "caller": f"{'/'.join(PurePath(record.pathname).parts[-2:])}:{record.lineno}",
            "msg": _phrase(record, fields),
        }
        if record.levelno < logging.ERROR:
            entry["v"] = max(0, logging.INFO - record.levelno)
        entry |= fields
        if record.exc_info:
            entry["stacktrace"] = _stack(record.exc_info)
        text = json.dumps(entry, default=str, ensure_ascii=False, separators=(",", ":"))
        return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class PlainFormatter(logging.Formatter):
    """`warning: phrase: error (key: value)`, for somebody who has typed a command and waits for it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, without the place in the code and without quotes."""
        fields = dict(_fields(record))
        text = _phrase(record, fields)
        if record.levelno >= logging.WARNING:
            text = f"{'error' if record.levelno >= logging.ERROR else 'warning'}: {text}"
        if "err" in fields:
            text += f": {fields.pop('err')}"
        if fields:
            text += f" ({', '.join(f'{key}: {value}' for key, value in fields.items())})"
        return one_line(text)


class _VerbosityFilter:
    """Passes a record if it is not more detailed than the verbosity of its file."""

    def __init__(self, verbosity: int, vmodule: Iterable[tuple[str, int]]) -> None:
        self.verbosity = verbosity
        self._patterns = tuple(vmodule)

    @property
    def maximum(self) -> int:
        """Return the highest verbosity of any file."""
        return max([self.verbosity, *(level for _, level in self._patterns)])

    def filter(self, record: logging.LogRecord) -> bool:
        """Apply klog's rule: the first pattern that matches the file's name without ending may raise the verbosity."""
        level, file = logging.INFO - record.levelno, PurePath(record.filename).stem
        raised = next((verbosity for pattern, verbosity in self._patterns if fnmatchcase(file, pattern)), 0)
        return level <= max(self.verbosity, raised)


def quoted(text: str) -> str:
    """Return a string in double quotes, escaped as Go does."""
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _escaped(char)) for char in text) + '"'


def set_up(verbosity: int, *, vmodule: Iterable[tuple[str, int]] = (), log_format: Format = "text") -> None:
    """Send our log to stderr; libraries log warnings and errors alone."""
    filter_ = _VerbosityFilter(verbosity, vmodule)
    handler = logging.StreamHandler(sys.stderr) if log_format == "plain" else RepeatsHandler(sys.stderr)
    handler.setFormatter(_formatter(log_format, journal=_is_journal(sys.stderr)))
    handler.addFilter(filter_)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("agent").setLevel(logging.INFO - min(filter_.maximum, _MAX_VERBOSITY))
    logging.captureWarnings(True)


def redirect(stream: TextIO) -> None:
    """Send our log to another stream from now on."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)


def set_verbosity(verbosity: int) -> None:
    """Change the verbosity; patterns and format stay as they were set up."""
    for handler in logging.getLogger().handlers:
        for filter_ in handler.filters:
            if isinstance(filter_, _VerbosityFilter):
                filter_.verbosity = verbosity
                logging.getLogger("agent").setLevel(logging.INFO - min(filter_.maximum, _MAX_VERBOSITY))


def _formatter(log_format: Format, *, journal: bool) -> logging.Formatter:
    if log_format == "plain":
        return PlainFormatter()
    if log_format == "json":
        return JournalFormatter(JsonFormatter()) if journal else JsonFormatter()
    return JournalFormatter(BareFormatter()) if journal else KlogFormatter()


def _is_journal(stream: TextIO) -> bool:
    """Return whether the stream goes to the journal, by the check of systemd.exec(5)."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return record.args if isinstance(record.args, dict) else {}


def _error_first(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the fields as klog's ErrorS prints them, wherever the error is in the call."""
    fields = _fields(record)
    is_error = record.levelno >= logging.ERROR and "err" in fields
    return {"err": fields["err"], **fields} if is_error else fields


def _phrase(record: logging.LogRecord, fields: Mapping[str, Any]) -> str:
    return str(record.msg) if fields else record.getMessage()


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _value(value: Any) -> str:
    if isinstance(value, bool | int | float | dict | list | tuple) or value is None:
        return json.dumps(value, default=str, separators=(",", ":"))
    text = str(value)
    return quoted(text) if "\n" not in text else _block(text)


def _block(text: str) -> str:
    """Return a text of several lines: each behind a tab, between `<` and ` >`."""
    lines = text.removesuffix("\n").split("\n")
    return "<\n" + "".join(f"\t{_printable(line)}\n" for line in lines) + " >"


def _stack(exc_info: Any) -> str:
    """Return a traceback, each line behind a tab: no line of an error's text can pass for a log line."""
    lines: list[str] = []
    for chunk in traceback.format_exception(*exc_info):
        is_frame = chunk.startswith(("  ", "\n", "Traceback "))  # else the error's text, which becomes one line
        lines += chunk.strip("\n").split("\n") if is_frame else [chunk.removesuffix("\n")]
    if len(lines) > _MAX_TRACEBACK_LINES:
        lines = [*lines[: _MAX_TRACEBACK_LINES // 2], "...", *lines[-_MAX_TRACEBACK_LINES // 2 :]]
    return "\n".join(f"\t{_printable(line[:_MAX_TRACEBACK_CHARACTERS])}" for line in lines)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else _ESCAPES.get(char) or _escaped(char) for char in text)
