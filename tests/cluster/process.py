"""Child processes that have a log file and never outlive the test run."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class StartFailed(Exception):
    """A process did not come up; the message has the end of its log."""


STARTED: list["Process"] = []  # what a failing test shows the logs of; conftest.py forgets them when they have ended


class Process:
    """One child in a session of its own, so that Ctrl-C reaches it only through us."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name, self.log = name, log
        self._argv, self._env, self._cwd = list(argv), env, cwd
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's own id: no wrapper stays in between."""
        if self._child is None:
            raise ProcessLookupError(f"{self.name} was not started")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start it, appending to its log."""
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [*leash(), *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if self._env is None else os.environ | self._env,
                start_new_session=True,
                cwd=self._cwd,
            )
        STARTED.append(self)

    def wait(self, within: float) -> int:
        """Its exit code, once it has ended by itself."""
        if self._child is None:
            raise ProcessLookupError(f"{self.name} was not started")
        return self._child.wait(within)

    def stop(self, within: float = 60.0) -> int | None:
        """End it with SIGTERM, or SIGKILL if it takes too long; the exit code, None if it never ran."""
        if self._child is None:
            return None
        self._child.terminate()
        try:
            return self._child.wait(within)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int | None:
        """End it with SIGKILL."""
        if self._child is None:
            return None
        self._child.kill()
        return self._child.wait()

    def log_text(self) -> str:
        """Everything it has written so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of it."""
        return "\n".join(self.log_text().splitlines()[-lines:])

    def failure(self, problem: str) -> StartFailed:
        """The problem as an exception that shows the last lines of the log."""
        return StartFailed(f"{self.name} {problem}; the end of {self.log}:\n{self.log_tail(15)}")


def leash() -> list[str]:
    """A prefix that makes the kernel kill the child when the thread that started it ends.

    setpriv becomes the child by exec. A preexec_fn could do the same, but not safely beside threads: Python 3.12 warns.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
