"""A process on a terminal, as a person has it: what it writes there, and the size that it is told."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from tests.cluster.waiting import eventually


class Terminal:
    """Starts a process on a terminal of its own, and ends it with Ctrl-C."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str]) -> None:
        around = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
        self._argv, self._env, self._text = argv, {**around, **env}, ""
        self._master, self._slave = pty.openpty()

    def __enter__(self) -> Self:
        streams = {"stdin": self._slave, "stdout": self._slave, "stderr": self._slave}
        self._process = subprocess.Popen(self._argv, env=self._env, start_new_session=True, **streams)
        os.set_blocking(self._master, False)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            eventually(lambda: self._read() is not None and self._process.poll() is not None)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._master)
            os.close(self._slave)

    def resize(self, *, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, pattern: str) -> str:
        """What this stands for in all that was written, once it is there."""
        try:
            return str(eventually(lambda: re.search(pattern, self._read(), re.DOTALL))[0])
        except AssertionError as error:
            raise AssertionError(f"{error}; the end of what was written: {self._text[-3000:]!r}") from None

    def _read(self) -> str:
        with suppress(BlockingIOError, OSError):
            while data := os.read(self._master, 65536):
                self._text += data.decode(errors="replace")
        return self._text
