"""What the tests of the command line share."""

import sys
from typing import NamedTuple

import pytest

from agent.cli import main


class Ended(NamedTuple):
    """What is left of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def fake_kubelet(monkeypatch, capsys):
    """Runs the command, in this process."""

    def run(*arguments, env=None):
        monkeypatch.setattr(sys, "argv", ["fake-kubelet", *arguments])
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as done:
            code = done.code or 0
        return Ended(code, *capsys.readouterr())

    return run
