"""`join`, and the daemon, against those who are no API server; and in a directory that belongs to somebody else."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.cluster.hostile import HostileDirectory
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.join import rogue
from tests.join.rogue import Rogue

SCRIPT = str(Path(sys.executable).with_name("fake-kubelet"))
SECRET = BOOTSTRAP_TOKEN.partition(".")[2]
ANSWERS = [
    rogue.endless,
    rogue.endless_chunks,
    rogue.bomb,
    rogue.drip,
    rogue.head_drip,
    rogue.not_yet,
    rogue.elsewhere,
]


# Whoever starts a process lends it the peak of its own memory until exec: this one has little.
MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def joined(folder, *words):
    """Run `join` for three seconds at most; its exit code, what it said, how long it took, and its memory in MiB."""
    flags = ["--discovery-timeout=3s", f"--kubeconfig={folder}/kubelet.conf", f"--bootstrap-kubeconfig={folder}/b.conf"]
    began = time.monotonic()
    argv = [sys.executable, "-S", "-c", MEASURED, SCRIPT, "join", *words, *flags]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, time.monotonic() - began, int(done.stdout.split()[-1]) / 1024


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_discovery_by_token_is_bounded(tmp_path, answer):
    words = ("--token", BOOTSTRAP_TOKEN, "--discovery-token-unsafe-skip-ca-verification")
    with Rogue(tmp_path, answer) as server:
        code, said, took, megabytes = joined(tmp_path, server.address, *words)
    assert (code, "Traceback" in said) == (1, False), said
    assert took < 30  # the answers go on for ever; the machine may be busy
    assert megabytes < 150  # idle, it has a third of that
    assert "couldn't validate the identity of the API Server" in said
    assert server.heads
    assert SECRET not in said + "".join(server.heads)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_discovery_by_file_is_bounded(tmp_path, answer):
    with Rogue(tmp_path, answer) as server:
        cluster = {"server": f"https://{server.address}", "certificate-authority": "rogue.crt"}
        (tmp_path / "discovery.conf").write_text(yaml.safe_dump({"clusters": [{"name": "", "cluster": cluster}]}))
        words = ("--discovery-file", str(tmp_path / "discovery.conf"), "--tls-bootstrap-token", BOOTSTRAP_TOKEN)
        code, said, took, megabytes = joined(tmp_path, *words)
    assert (code, "Traceback" in said) == (1, False), said
    assert took < 30
    assert megabytes < 150
    assert server.heads
    assert SECRET not in said + "".join(server.heads)


def test_join_runs_no_code_of_the_directory_that_it_is_started_in(machine, tmp_path):
    hostile = HostileDirectory(tmp_path)
    machine.bootstrap.unlink()
    words = [machine.plane.endpoint, "--token", BOOTSTRAP_TOKEN, "--discovery-token-ca-cert-hash", machine.plane.pin]
    files = [*machine.flags, f"--client-ca-file={tmp_path / 'ca.crt'}"]
    log = tmp_path / "fake-kubelet.log"
    process = Process("fake-kubelet", [SCRIPT, "join", *words, *files], log=log, cwd=hostile.folder)
    machine.processes.append(process)
    process.start()
    machine.wait_until_ready()
    eventually(lambda: "Loaded serving certificate" in machine.log_text(), within=60)  # a child made its key
    assert hostile.sprung == []


@pytest.mark.parametrize("place", ["kubeconfig", "bootstrap"])
@pytest.mark.parametrize("rotate", ["true", "false"])
def test_credentials_do_not_go_to_whom_nobody_verified(machine, tmp_path, place, rotate):
    with Rogue(tmp_path) as server:
        config = yaml.safe_load(machine.plane.bootstrap_kubeconfig.read_text())
        config["users"][0]["user"] = {"token": BOOTSTRAP_TOKEN}
        config["clusters"][0]["cluster"] |= {"server": f"https://{server.address}", "insecure-skip-tls-verify": True}
        getattr(machine, place).write_text(yaml.safe_dump(config))
        if place == "kubeconfig":
            machine.bootstrap.unlink()
        process = machine.start(f"--rotate-certificates={rotate}")
        eventually(lambda: not process.running)
        assert process.stop() == 1
    assert server.heads == []
    assert "specifying a root certificates file with the insecure flag is not allowed" in machine.log_text()
    assert "Traceback" not in machine.log_text()


def test_a_flag_that_comes_later_changes_nothing_for_the_connections_in_use(machine):
    machine.start("--rotate-certificates")
    machine.wait_until_ready()
    eventually(lambda: "certificate-authority-data" in machine.kubeconfig.read_text())
    config = yaml.safe_load(machine.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    machine.kubeconfig.write_text(yaml.safe_dump(config))
    refused = "Unable to reload credentials, keeping those in use"
    eventually(lambda: refused in machine.log_text())
    time.sleep(12)  # two more looks at the file
    assert machine.log_text().count(refused) == 1
    assert machine.is_ready()
    assert machine.processes[0].running


ODD = ("not-an-ip", "fe80::1%eth0", "192.0.2.7/24", "b\u00fccher.example", "a\nb", "x" * 300)


def test_addresses_that_no_certificate_can_have_are_left_out(machine):
    """The Node's status belongs to whoever may write it; here the daemon does not write the addresses itself."""
    machine.start("--rotate-certificates", "--rotate-server-certificates", "--cloud-provider=external", "--node-ip=::")
    eventually(lambda: machine.plane.get("node", machine.name))
    kinds = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")
    odd = [{"type": kind, "address": text} for kind in kinds for text in ODD]
    addresses = [*odd, {"type": "InternalIP", "address": "192.0.2.1"}]
    patch = yaml.safe_dump({"status": {"addresses": addresses}}, allow_unicode=True)
    machine.plane.kubectl("patch", "node", machine.name, "--subresource=status", "--type=merge", f"--patch={patch}")
    eventually(machine.serving_requests, within=40)
    assert machine.processes[0].running
    assert "Traceback" not in machine.log_text()
