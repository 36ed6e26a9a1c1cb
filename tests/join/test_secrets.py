"""After a whole run at the highest verbosity, tokens and keys are in private files and nowhere else."""

import stat
from pathlib import Path

import psutil
import pytest

from agent.core.x509 import private_key
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.waiting import eventually
from tests.join.test_join import by_token

SECRET = BOOTSTRAP_TOKEN.partition(".")[2]


def spoken(process):
    """What anybody on the machine can read about a process and its children: command lines, as `ps` shows them."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        return [" ".join(member.cmdline()) for member in family]
    except psutil.Error:
        return []


def watched(machine, process):
    """All command lines seen until the node is Ready."""
    seen = set()

    def look():
        seen.update(spoken(process))
        return "Successfully registered node" in machine.log_text()

    eventually(look, within=20, every=0.005)
    return seen


def secret_lines(machine):
    """The lines of all keys on the machine: each is a secret of its own."""
    keys = (private_key(path.read_text()) for path in machine.pki.glob("*.pem"))
    return {line for key in keys for line in key.splitlines() if line and not line.startswith("-----")}


def assert_private(machine):
    secrets = {SECRET, *secret_lines(machine)}
    assert len(secrets) > 3  # there was something to look for
    for path in machine.folder.rglob("*"):
        if path.is_file() and any(secret in path.read_text(errors="replace") for secret in secrets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
            assert path.name != "fake-kubelet.log"


@pytest.mark.parametrize("rotate", ["false", "true"], ids=["at once", "in the background"])
def test_a_bootstrap_tells_nobody_its_secrets(machine, rotate):
    process = machine.start(f"--rotate-certificates={rotate}", "-v=10")
    seen = watched(machine, process)
    assert any("agent.adapters.certificates.child" in line for line in seen)  # the child that makes keys was seen
    assert not [line for line in seen if SECRET in line or "PRIVATE" in line]
    process.stop()
    assert_private(machine)


def test_join_tells_nobody_its_secrets_but_whom_the_user_told(machine):
    process = by_token(machine, more=["-v=10"])
    eventually(lambda: "Successfully registered node" in machine.log_text(), within=20)
    assert not [line for line in spoken(process) if SECRET in line]
    assert SECRET not in Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
    process.stop()
    assert_private(machine)
