"""The daemon's own line, which costs no more than the daemon needs."""

import gc
import os
import subprocess
import sys

import pytest

from agent.cli.commands import cli
from agent.cli.daemon import COMMANDS, _no_collections

HEAVY = ("aiohttp", "attr", "cryptography", "dbus_fast", "httpcore", "httpx", "prometheus_client", "rich", "typer")


@pytest.mark.parametrize("module", ["agent.app", "agent.cli"])
def test_the_daemon_imports_nothing_heavy_that_it_may_never_need(module):
    script = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_imports_run_without_the_garbage_collector_which_is_on_again_afterwards():
    with _no_collections():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_every_command_is_known_before_typer_is_loaded():
    groups = {group.name for group in cli.registered_groups}
    commands = {command.name or command.callback.__name__ for command in cli.registered_commands}
    assert groups | commands == COMMANDS


@pytest.mark.parametrize(
    "command",
    [
        "config check --kubeconfig={folder}/kubeconfig",
        "healthcheck --healthz-port=1",
        "join 127.0.0.1:1 --token=abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification "
        "--discovery-timeout=1s",
        "--kubeconfig={folder}/kubelet.conf --bootstrap-kubeconfig={folder}/none",
    ],
    ids=lambda command: command.split()[0],
)
def test_the_keys_of_connections_are_written_to_no_file(tmp_path, command):
    (tmp_path / "kubeconfig").write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: c}}], "
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}"
    )
    environment = os.environ | {"SSLKEYLOGFILE": str(tmp_path / "keys"), "HOME": str(tmp_path)}
    argv = [sys.executable, "-m", "agent", *command.format(folder=tmp_path).split()]
    said = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "keys").exists()
