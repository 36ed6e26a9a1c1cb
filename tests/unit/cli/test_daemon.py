"""The daemon's own line, which costs no more than the daemon needs."""

import subprocess
import sys

import pytest

from agent.cli.commands import cli
from agent.cli.daemon import COMMANDS

HEAVY = ("cryptography", "dbus_fast", "httpcore", "httpx", "prometheus_client", "rich", "typer")


@pytest.mark.parametrize("module", ["agent.app", "agent.cli"])
def test_the_daemon_imports_nothing_heavy_that_it_may_never_need(module):
    script = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_every_command_is_known_before_typer_is_loaded():
    groups = {group.name for group in cli.registered_groups}
    commands = {command.name or command.callback.__name__ for command in cli.registered_commands}
    assert groups | commands == COMMANDS
