"""After a whole run at the highest verbosity, tokens and keys are in private files and nowhere else."""

import stat
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agent.core.x509 import private_key
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.waiting import eventually
from tests.join.connect_proxy import ConnectProxy

SECRET = BOOTSTRAP_TOKEN.partition(".")[2]
PASSWORD = "hunter2"


def spoken(process):
    """What anybody on the machine can read about a process and its children: command lines, as `ps` shows them."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    with suppress(psutil.NoSuchProcess):  # a child that has just ended
        return [" ".join(member.cmdline()) for member in family]
    return []


def secret_lines(machine):
    """The lines of all keys on the machine: each is a secret of its own."""
    keys = (private_key(path.read_text()) for path in machine.pki.iterdir())
    return {line for key in keys for line in key.splitlines() if line and not line.startswith("-----")}


def stop_with_all_keys(machine, process):
    """The key for the node's own server is made beside everything else, and takes longest."""
    eventually(lambda: "Loaded serving certificate" in machine.log_text())
    process.stop()


def assert_private(machine):
    secrets = {SECRET, *secret_lines(machine)}
    assert len(secrets) > 20  # there was something to look for: an RSA key alone has so many lines
    for path in machine.folder.rglob("*"):
        if path.is_file() and any(secret in path.read_text(errors="replace") for secret in secrets):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
            assert path.name != "fake-kubelet.log"


@pytest.mark.parametrize("rotate", ["false", "true"], ids=["at once", "in the background"])
def test_a_bootstrap_tells_nobody_its_secrets(machine, rotate):
    process = machine.start_overheard(f"--rotate-certificates={rotate}", "-v=10")
    eventually(lambda: "Successfully registered node" in machine.log_text())
    seen = eventually(lambda: spoken(process)) + machine.overheard("exec")
    assert any("agent.adapters.certificates.key_worker_main" in line for line in seen)  # the child that makes keys
    assert not [line for line in seen if SECRET in line or "PRIVATE" in line]
    stop_with_all_keys(machine, process)
    assert_private(machine)


def test_join_tells_nobody_its_secrets_but_whom_the_user_told(machine):
    process = machine.join_by_token(more=["-v=10"])
    eventually(lambda: "Successfully registered node" in machine.log_text())
    assert not [line for line in eventually(lambda: spoken(process)) if SECRET in line]
    assert SECRET not in Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
    stop_with_all_keys(machine, process)
    assert_private(machine)


@pytest.mark.parametrize("rotate", ["false", "true"], ids=["at once", "in the background"])
@pytest.mark.parametrize("broken", ["bootstrap", "kubeconfig"])
def test_a_malformed_kubeconfig_is_told_without_the_line_that_is_wrong(machine, broken, rotate):
    path = getattr(machine, broken)
    path.write_text(f"kind: Config\nusers:\n- user:\n    token: {BOOTSTRAP_TOKEN}: oops\n")
    if broken == "kubeconfig":
        machine.bootstrap.unlink()
    process = machine.start(f"--rotate-certificates={rotate}", "-v=10")
    eventually(lambda: not process.running)
    assert process.stop() == 1
    assert f"{path}: line 4, column " in machine.log_text()
    assert SECRET not in machine.log_text()


def test_a_proxy_that_lets_nobody_through_is_told_without_its_password(machine):
    with ConnectProxy(None) as proxy:
        address = f"http://user:{PASSWORD}@127.0.0.1:{proxy.port}"
        server = "https://kubernetes.default.svc:6443"
        machine.write_kubeconfig({"token": BOOTSTRAP_TOKEN}, **{"server": server, "proxy-url": address})
        process = machine.start_by_kubeconfig("-v=10")
        eventually(lambda: "the proxy answered 407 Proxy Authentication Required" in machine.log_text())
        assert process.stop() == 0
    assert PASSWORD not in machine.log_text()
    assert b64encode(f"user:{PASSWORD}".encode()).decode() not in machine.log_text()
