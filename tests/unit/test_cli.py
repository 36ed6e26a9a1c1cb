import subprocess
import sys
from dataclasses import fields

import pytest

from agent.adapters.settings import Flags
from agent.cli import kubelet_arguments


def fake_kubelet(*arguments):
    return subprocess.run([sys.executable, "-m", "agent", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("given", "rewritten"),
    [
        (["--register-node=false"], ["--no-register-node"]),
        (["--register-node=true"], ["--register-node"]),
        (["--register-node"], ["--register-node"]),
        (["--register-node=maybe"], ["--register-node=maybe"]),
        (["--node-labels=a=false", "-v=2"], ["--node-labels=a=false", "-v=2"]),
    ],
)
def test_kubelets_booleans_are_understood(given, rewritten):
    assert kubelet_arguments(given) == rewritten


def test_help_tells_of_every_flag():
    shown = fake_kubelet("--help")
    assert shown.returncode == 0
    for flag in fields(Flags):
        assert f"--{flag.name.replace('_', '-')}" in shown.stdout
    assert " demo " in shown.stdout


def test_the_version_is_told_as_kubelet_does():
    shown = fake_kubelet("--version")
    assert (shown.returncode, shown.stdout.split()[:2]) == (0, ["Kubernetes", "v1.36.3"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--no-such-flag"], "--no-such-flag"),
        (["--max-pods", "many"], "--max-pods"),
        (["--register-node=maybe"], "--register-node"),
        (["--hostname-override", "a_b", "--kubeconfig", "/k"], "give another with --hostname-override"),
        (["--kubeconfig", "/no/such/file"], "cannot read --kubeconfig /no/such/file: No such file or directory"),
        (["--kubeconfig", "/k", "--eviction-hard", "memory.available"], "--eviction-hard"),
    ],
)
def test_a_mistake_is_one_clear_message_and_exit_code_1(arguments, said):
    failed = fake_kubelet(*arguments)
    assert failed.returncode == 1
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr
