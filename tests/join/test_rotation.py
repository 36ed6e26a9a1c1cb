"""Certificates that live for a minute: they are renewed again and again, and no heartbeat is missed."""

import json
from datetime import datetime
from itertools import pairwise

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually
from tests.join.machine import Machine


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
    for process in made.processes:
        process.stop()


def renewals(machine):
    """When the lease was written."""
    written = [r for r in machine.requests() if "/leases" in r["requestURI"] and r["verb"] in {"create", "update"}]
    assert {request["responseStatus"]["code"] for request in written} <= {200, 201}
    return [datetime.fromisoformat(request["requestReceivedTimestamp"]) for request in written]


def certificates(machine):
    return len(machine.signing_requests())


def test_three_rotations_and_more_cost_no_heartbeat(machine):
    process = machine.start("--rotate-certificates", "-v=2")
    machine.wait_until_ready()
    before = len(machine.log_text())  # as a kubelet's, the first lease may be quicker than the Node, and say so
    eventually(lambda: certificates(machine) >= 4, within=90, every=1)  # the first one, and three that replaced it
    eventually(lambda: len(renewals(machine)) >= 4, within=60, every=1)
    assert process.running
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(renewals(machine))]
    # A lease is renewed every 10 to 10.4 s, on a busy machine some seconds later: one that was left out makes 20.
    assert max(gaps) < 20, gaps
    assert "lease" not in machine.log_text()[before:]  # one that fails is told, and tried again sooner than in 20 s
    assert machine.refusals() == []
    asked = [csr["spec"]["username"] for csr in machine.signing_requests()]
    assert asked[0] == "system:bootstrap:abcdef"
    assert set(asked[1:]) == {f"system:node:{machine.name}"}
    assert_used(machine)


def assert_used(machine):
    """The API server saw several certificates of ours, each by its own fingerprint."""
    seen = {
        json.dumps(request["user"]["extra"]["authentication.kubernetes.io/credential-id"])
        for request in machine.requests()
        if request["user"]["username"] == f"system:node:{machine.name}"
    }
    assert len(seen) >= 3  # the last one may not have been used yet
