"""`fake-kubelet join`, in kubeadm's words, against a real control plane."""

import secrets
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from agent.adapters.certificates.bootstrap_files import bootstrap_document
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.machine import UNAPPROVED_TOKEN, make_token
from tests.cluster.waiting import eventually

SECRET = BOOTSTRAP_TOKEN.partition(".")[2]


def refused(machine, process):
    """What it said when it gave up."""
    eventually(lambda: not process.running)
    assert process.stop() == 1
    assert not machine.bootstrap.exists()
    assert SECRET not in machine.log_text()
    return machine.log_text()


def test_one_command_with_a_token_and_a_hash_makes_a_ready_node(machine):
    process = machine.join_by_token()
    machine.wait_until_ready()
    assert machine.refusals() == []
    assert (machine.folder / "ca.crt").read_text() == machine.plane.ca_file.read_text()
    command_line = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
    assert "--rotate-certificates=true" in command_line
    assert SECRET not in " ".join(command_line)  # the daemon has taken the place of the command


def test_the_token_is_on_the_disk_no_longer_than_it_is_needed(unapproved_machine):
    machine = unapproved_machine
    machine.join_by_token(more=["--tls-bootstrap-token", UNAPPROVED_TOKEN])
    (request,) = eventually(machine.signing_requests)
    assert stat.S_IMODE(machine.bootstrap.stat().st_mode) == 0o600
    machine.approve(request)
    machine.wait_until_ready()
    eventually(lambda: not machine.bootstrap.exists())  # as kubeadm


@pytest.mark.parametrize("rotate", ["true", "false"])
def test_a_bootstrap_kubeconfig_that_join_did_not_write_stays(machine, rotate):
    machine.start(f"--rotate-certificates={rotate}")
    machine.wait_until_ready()
    assert machine.bootstrap.exists()


@pytest.mark.parametrize("rotate", ["true", "false"])
def test_a_bootstrap_kubeconfig_that_a_crash_left_is_removed_by_the_next_start(machine, rotate):
    machine.join_by_token(more=[f"--rotate-certificates={rotate}"])
    machine.wait_until_ready()
    eventually(lambda: not machine.bootstrap.exists())
    machine.processes[0].stop()
    machine.bootstrap.write_text(yaml.safe_dump(bootstrap_document({"server": machine.plane.url}, {"token": "t"})))
    machine.start(f"--rotate-certificates={rotate}")
    eventually(lambda: not machine.bootstrap.exists())


def test_the_same_command_again_needs_no_token_that_is_still_good(machine):
    machine.join_by_token()
    machine.wait_until_ready()
    machine.processes[0].stop()
    machine.join_by_token(token="abcdef.fedcba9876543210")
    eventually(lambda: "Node was previously registered" in machine.log_text())
    assert "This machine has joined already" in machine.log_text()
    keeps_away = "--register-with-taints=fake-kubelet.dev/simulated=true:NoSchedule keeps them away"
    assert f"none of their containers runs (hint: {keeps_away})\n" in machine.log_text()


def test_without_pins_one_has_to_say_that_this_is_unsafe(machine):
    words = (machine.plane.endpoint, "--token", BOOTSTRAP_TOKEN)
    assert "--discovery-token-unsafe-skip-ca-verification" in refused(machine, machine.join(*words))
    machine.join(*words, "--discovery-token-unsafe-skip-ca-verification")
    machine.wait_until_ready()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ca_hash": f"sha256:{'0' * 64}"}, "none of the public keys"),
        ({"ca_hash": "md5:00"}, "unknown hash format"),
        ({"token": "abcdef.fedcba9876543210"}, "failed to verify JWS signature"),
        ({"token": "nobody.0123456789abcdef", "more": ["--discovery-timeout=0s"]}, "is invalid for this cluster"),
        ({"token": "nonsense"}, "not of the form"),
    ],
    ids=["wrong hash", "strange hash", "wrong secret", "unknown token", "no token at all"],
)
def test_a_cluster_that_cannot_be_trusted_is_not_joined(machine, changes, words):
    assert words in refused(machine, machine.join_by_token(**changes))


@pytest.fixture
def expired(machine):
    """A token that was good until a moment ago."""
    token = f"{secrets.token_hex(3)}.0123456789abcdef"
    place = make_token(machine.plane, token, **{"usage-bootstrap-signing": "true"})
    eventually(lambda: is_signed(machine, token[:6]))
    end = datetime.now(UTC) - timedelta(seconds=1)
    # The token cleaner removes the Secret, if it is quicker than the signer.
    machine.api.patch(place, {"stringData": {"expiration": f"{end:%Y-%m-%dT%H:%M:%SZ}"}})
    eventually(lambda: not is_signed(machine, token[:6]))
    return token


def is_signed(machine, identity):
    return f"jws-kubeconfig-{identity}" in machine.plane.get("configmap", "cluster-info", "kube-public")["data"]


def test_a_token_that_has_expired_finds_no_cluster_and_lets_nobody_in(machine, expired):
    said = refused(machine, machine.join_by_token(token=expired, more=["--discovery-timeout=0s"]))
    assert f'token id "{expired[:6]}" is invalid for this cluster or it has expired' in said
    machine.give_token(expired)
    process = machine.start()
    eventually(lambda: not process.running)
    assert process.stop() == 1
    assert "failed to run Kubelet: Unauthorized" in machine.log_text()


def test_a_cluster_that_does_not_answer_is_given_up_after_the_timeout(machine):
    words = ("127.0.0.1:1", "--token", BOOTSTRAP_TOKEN, "--discovery-token-ca-cert-hash", machine.plane.pin)
    said = refused(machine, machine.join(*words, "--discovery-timeout=3s"))
    assert "Retrying discovery" in said
    assert "https://127.0.0.1:1" in said


def test_a_discovery_file_with_a_token_beside_it_will_do(machine):
    discovery = machine.folder / "discovery.conf"
    discovery.write_text(machine.plane.get("configmap", "cluster-info", "kube-public")["data"]["kubeconfig"])
    machine.join("--discovery-file", str(discovery), "--tls-bootstrap-token", BOOTSTRAP_TOKEN)
    machine.wait_until_ready()


def test_a_discovery_file_that_brings_credentials_needs_no_more(machine):
    machine.join("--discovery-file", str(machine.plane.bootstrap_kubeconfig))
    machine.wait_until_ready()


def test_a_discovery_file_of_another_cluster_is_found_out(machine, tmp_path):
    text = machine.plane.bootstrap_kubeconfig.read_text()
    discovery = tmp_path / "discovery.conf"
    discovery.write_text(text.replace("certificate-authority-data", "none"))
    said = refused(machine, machine.join("--discovery-file", str(discovery), "--discovery-timeout=0s"))
    assert "x509: certificate signed by unknown authority" in said
