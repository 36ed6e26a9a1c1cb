"""Certificates that live for a minute: they are renewed again and again, and no heartbeat is missed."""

from itertools import pairwise

import pytest

from tests.cluster import audit
from tests.cluster.control_plane import ControlPlane
from tests.cluster.machine import Machine
from tests.cluster.waiting import eventually


@pytest.fixture(scope="module")
def short_lived(binaries, tmp_path_factory):
    # The signer dates a certificate back by 5 minutes, so one of 60 s is due 0 to 24 s after it was made.
    life = {"kube-controller-manager": ["--cluster-signing-duration=60s"]}
    with ControlPlane(tmp_path_factory.mktemp("short-lived"), binaries=binaries, extra_args=life) as plane:
        yield plane


@pytest.fixture
def machine(short_lived, node_name, tmp_path):
    made = Machine(short_lived, node_name, tmp_path)
    made.give_token()
    yield made
    made.stop()


LEASE_SECONDS = 20  # renewed every 5


def lease_writes(machine):
    """The requests that wrote the lease."""
    written = [r for r in machine.requests() if "/leases" in r["requestURI"] and r["verb"] in {"create", "update"}]
    assert {request["responseStatus"]["code"] for request in written} <= {200, 201}
    return written


def certificates_used(machine):
    """By which certificates the API server knew the node when it wrote its lease, each by its own fingerprint."""
    fingerprint = "authentication.kubernetes.io/credential-id"
    return {tuple(request["user"]["extra"][fingerprint]) for request in lease_writes(machine)}


@pytest.mark.slow
def test_three_rotations_and_more_cost_no_heartbeat(machine):
    process = machine.start("--rotate-certificates", "-v=2", f"--node-lease-duration-seconds={LEASE_SECONDS}")
    machine.wait_until_ready()
    machine.owned_lease()
    before = len(machine.log_text())  # as a kubelet's, the first lease may be quicker than the Node, and say so
    eventually(lambda: len(machine.signing_requests()) >= 4, every=1)  # the first one, and three that replaced it
    eventually(lambda: len(certificates_used(machine)) >= 3, every=1)  # some may live for less than a heartbeat
    assert process.running
    assert "lease" not in machine.log_text()[before:]  # one that fails is told, and tried again
    assert machine.refusals() == []
    times = audit.renewals(audit.requests_of(machine.name, machine.plane.audit_log))
    assert len(times) >= 3
    # One that was left out and not made up for would make the cluster think that the node is dead.
    assert all((later - earlier).total_seconds() < LEASE_SECONDS for earlier, later in pairwise(times))
    asked = [csr["spec"]["username"] for csr in machine.signing_requests()]
    assert asked[0] == "system:bootstrap:abcdef"
    assert set(asked[1:]) == {f"system:node:{machine.name}"}
