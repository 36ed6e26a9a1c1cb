"""`join`, and the daemon, against those who are no API server; and in a directory that belongs to somebody else."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.cluster.api import NODES
from tests.cluster.command import completed
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


def joined(folder, server, *words):
    """What `join` said that could not, and its memory in MiB; it ends by itself, though the answers go on for ever."""
    flags = [f"--kubeconfig={folder}/kubelet.conf", f"--bootstrap-kubeconfig={folder}/b.conf"]
    for seconds in (2, 30):  # the second time for a machine on which the first request takes longer than that
        argv = [sys.executable, "-S", "-c", MEASURED, SCRIPT, "join", *words, *flags, f"--discovery-timeout={seconds}s"]
        done = completed(argv)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
        if server.heads:
            break
    assert server.heads
    assert SECRET not in done.stderr + "".join(server.heads)
    return done.stderr, int(done.stdout.split()[-1]) / 1024


def joined_by_token(folder, answer):
    words = ("--token", BOOTSTRAP_TOKEN, "--discovery-token-unsafe-skip-ca-verification")
    with Rogue(folder, answer) as server:
        return joined(folder, server, server.address, *words)


def joined_by_file(folder, answer):
    with Rogue(folder, answer) as server:
        cluster = {"server": f"https://{server.address}", "certificate-authority": "rogue.crt"}
        (folder / "discovery.conf").write_text(yaml.safe_dump({"clusters": [{"name": "", "cluster": cluster}]}))
        words = ("--discovery-file", str(folder / "discovery.conf"), "--tls-bootstrap-token", BOOTSTRAP_TOKEN)
        return joined(folder, server, *words)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.__name__)
def test_discovery_by_token_and_by_file_is_bounded(tmp_path, answer):
    ways = {"token": joined_by_token, "file": joined_by_file}
    for name in ways:
        (tmp_path / name).mkdir()
    with ThreadPoolExecutor() as both:
        outcomes = {name: both.submit(way, tmp_path / name, answer) for name, way in ways.items()}
    said = {name: outcome.result()[0] for name, outcome in outcomes.items()}
    assert "couldn't validate the identity of the API Server" in said["token"]
    # Idle, it has a third of that; what it is sent are gigabytes.
    assert {name: outcome.result()[1] < 150 for name, outcome in outcomes.items()} == {"token": True, "file": True}


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
    eventually(lambda: "Loaded serving certificate" in machine.log_text())  # a child made its key
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
    process = machine.start_overheard("--rotate-certificates")
    machine.wait_until_ready()
    eventually(lambda: "certificate-authority-data" in machine.kubeconfig.read_text())
    config = yaml.safe_load(machine.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    machine.kubeconfig.write_text(yaml.safe_dump(config))
    refused = "Unable to reload credentials, keeping those in use"
    eventually(lambda: refused in machine.log_text())
    for _ in range(2):  # when the second look begins, all was said about the first
        looks = machine.overheard("open").count(str(machine.kubeconfig))
        os.kill(process.pid, signal.SIGHUP)
        eventually(lambda looks=looks: machine.overheard("open").count(str(machine.kubeconfig)) > looks)
    assert machine.log_text().count(refused) == 1
    assert machine.is_ready()
    assert process.running


ODD = ("not-an-ip", "fe80::1%eth0", "192.0.2.7/24", "b\u00fccher.example", "a\nb", "x" * 300)


def test_addresses_that_no_certificate_can_have_are_left_out(machine):
    """The Node's status belongs to whoever may write it; here the daemon does not write the addresses itself."""
    machine.start("--rotate-certificates", "--rotate-server-certificates", "--cloud-provider=external", "--node-ip=::")
    eventually(lambda: machine.plane.get("node", machine.name))
    kinds = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")
    odd = [{"type": kind, "address": text} for kind in kinds for text in ODD]
    addresses = [*odd, {"type": "InternalIP", "address": "192.0.2.1"}]
    patch = {"status": {"addresses": addresses}}
    machine.api.patch(f"{NODES}/{machine.name}/status", patch)
    eventually(machine.serving_requests)
    assert machine.processes[0].running
    assert "Traceback" not in machine.log_text()
