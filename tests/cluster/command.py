"""Running a command line tool to its end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class CommandFailed(Exception):
    """A command ended with an error; the message has what it said."""

    def __init__(self, argv: Sequence[str], code: int, said: str) -> None:
        super().__init__(f"`{' '.join(argv)}` ended with {code}: {said}")
        self.code, self.said = code, said


def completed(
    argv: Sequence[str],
    *,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 240.0,
) -> subprocess.CompletedProcess[str]:
    """The command after its end, however it ended."""
    return subprocess.run(
        argv,
        input=stdin,
        env=os.environ | (env or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def run(argv: Sequence[str], *, check: bool = True, **options: Any) -> str:
    """What the command prints; CommandFailed if it fails and `check` is on."""
    done = completed(argv, **options)
    if check and done.returncode != 0:
        raise CommandFailed(argv, done.returncode, done.stderr.strip() or done.stdout.strip())
    return done.stdout
