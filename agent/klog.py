"""Log lines in klog's text format, from the standard logging module.

A call is a fixed phrase and a dict: `log.info("Successfully registered node", {"node": name})`.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any

# klog's V levels as logging levels: `-v N` shows everything down to INFO - N.
V2, V3, V4, V5 = (logging.INFO - verbosity for verbosity in (2, 3, 4, 5))


class KlogFormatter(logging.Formatter):
    """`Lmmdd hh:mm:ss.uuuuuu PPPPPPP file:line] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line a record, as a kubelet prints it on stderr."""
        letter = "E" if record.levelno >= logging.ERROR else "W" if record.levelno >= logging.WARNING else "I"
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        header = f"{letter}{at:%m%d %H:%M:%S.%f} {os.getpid():7d} {record.filename}:{record.lineno}]"
        fields = record.args if isinstance(record.args, dict) else {}
        line = f"{header} {quoted(record.msg if fields else record.getMessage())}"
        for key, value in fields.items():
            line += f" {key}={_value(value)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def quoted(text: str) -> str:
    """A string in double quotes, escaped as Go does."""
    return json.dumps(text, ensure_ascii=False)


def set_up(verbosity: int) -> None:
    """Send our log to stderr; other people's libraries speak only when something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KlogFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("agent").setLevel(max(logging.DEBUG, logging.INFO - verbosity))
    logging.captureWarnings(True)


def _value(value: Any) -> str:
    if isinstance(value, bool | int | float | dict | list | tuple) or value is None:
        return json.dumps(value, default=str, separators=(",", ":"))
    return quoted(str(value))
