"""Running a command line tool to its end."""

import os
import subprocess
from collections.abc import Mapping, Sequence


class CommandFailed(Exception):
    """A command ended with an error; the message has what it said."""

    def __init__(self, argv: Sequence[str], code: int, said: str) -> None:
        super().__init__(f"`{' '.join(argv)}` ended with {code}: {said}")
        self.code, self.said = code, said


def run(
    argv: Sequence[str],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    check: bool = True,
    timeout: float = 60.0,
) -> str:
    """What the command prints; CommandFailed if it fails and `check` is on."""
    done = subprocess.run(
        argv,
        input=stdin or "",
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if check and done.returncode != 0:
        raise CommandFailed(argv, done.returncode, done.stderr.strip() or done.stdout.strip())
    return done.stdout
