"""From a bootstrap token to a node with a certificate of its own, on a real control plane."""

import stat
from pathlib import Path

import pytest
import yaml

from agent.core.csr import CLIENT_SIGNER, client_template, digested_name, usages
from agent.core.x509 import read_certificates
from tests.cluster.api import SIGNING_REQUESTS
from tests.cluster.waiting import eventually

BOTH = pytest.mark.parametrize("rotate", ["false", "true"], ids=["at once", "in the background"])


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_next_start_needs_no_token(machine):
    machine.start()
    machine.wait_until_ready()
    machine.processes[0].stop()
    machine.bootstrap.unlink()
    machine.start()
    eventually(lambda: "Node was previously registered" in machine.log_text())
    assert len(machine.signing_requests()) == 1


@BOTH
def test_a_pair_that_was_cut_off_is_replaced(machine, rotate):
    machine.start(f"--rotate-certificates={rotate}")
    machine.wait_until_ready()
    machine.processes[0].kill()
    target = machine.current.readlink()
    target.write_text(target.read_text()[:300])
    machine.start(f"--rotate-certificates={rotate}")
    eventually(lambda: "Node was previously registered" in machine.log_text())
    assert read_certificates(machine.current.read_text())
    assert machine.refusals() == []


def test_a_request_that_waits_is_found_again_after_a_restart(unapproved_machine):
    machine = unapproved_machine
    first = machine.start()
    (request,) = eventually(machine.signing_requests)
    kept = machine.pki / "kubelet-client.key.tmp"
    assert mode(kept) == 0o600  # it was there before the request
    first.kill()
    machine.start()
    eventually(lambda: "csr for this node already exists, reusing" in machine.log_text())
    machine.approve(request)
    machine.wait_until_ready()
    assert len(machine.signing_requests()) == 1
    assert not kept.exists()


def test_a_request_that_is_denied_ends_the_start_with_the_reason(unapproved_machine):
    machine = unapproved_machine
    process = machine.start()
    (request,) = eventually(machine.signing_requests)
    machine.approve(request, "Denied")
    eventually(lambda: not process.running)
    assert process.stop() == 1
    assert "certificate signing request is denied, reason: KubectlDeny" in machine.log_text()


def test_in_the_background_a_denied_request_is_followed_by_another_one(unapproved_machine):
    machine = unapproved_machine
    process = machine.start("--rotate-certificates")
    (first,) = eventually(machine.signing_requests)
    machine.approve(first, "Denied")
    second = eventually(lambda: machine.signing_requests()[1])
    machine.approve(second)
    machine.wait_until_ready()
    assert process.running
    assert machine.refusals() == []


def test_a_token_that_the_cluster_does_not_know_ends_the_start(machine):
    machine.give_token("abcdef.fedcba9876543210")
    process = machine.start()
    eventually(lambda: not process.running)
    assert process.stop() == 1
    assert "Unauthorized" in machine.log_text()
    assert not machine.kubeconfig.exists()


def test_a_signal_ends_the_wait_for_a_certificate_at_once(unapproved_machine):
    process = unapproved_machine.start()
    eventually(unapproved_machine.signing_requests)
    assert process.stop() == 0  # and not after the quarter of an hour that a certificate is waited for


def test_the_certificate_of_another_node_is_not_used(machine):
    machine.start()
    machine.wait_until_ready()
    machine.processes[0].stop()
    machine.name = f"other-{machine.name}"
    machine.start()
    machine.wait_until_ready()
    assert f"the client certificate is that of system:node:{machine.name.removeprefix('other-')}" in machine.log_text()


def test_a_kubelets_own_request_has_the_name_that_we_would_give_it(machine, start_kubelet):
    flags = [f"--bootstrap-kubeconfig={machine.bootstrap}", f"--kubeconfig={machine.kubeconfig}"]
    start_kubelet(machine.name, flags=flags)
    machine.wait_until_ready()
    issued = machine.api.items(SIGNING_REQUESTS)
    user = yaml.safe_load(machine.kubeconfig.read_text())["users"][0]["user"]
    key = read_certificates(Path(user["client-certificate"]).read_text())[0].public_key
    name = digested_name(key, client_template(machine.name), usages(CLIENT_SIGNER, is_rsa=False))
    assert name in {csr["metadata"]["name"] for csr in issued}
