"""It is told to stop: while nobody answers, and with a farewell to the cluster."""

import os
import signal

import pytest

from tests.cluster.api import Refused
from tests.cluster.waiting import eventually

_PATIENCE_SECONDS = 120.0  # of a busy machine: it ends by itself, or is killed and has another exit code


def test_a_stop_in_the_middle_of_an_outage_takes_no_longer_than_its_deadline(join, proxy):
    member = join("--deregister", "--node-status-update-frequency=4s")  # which is also how long a request may take
    proxy.set(silent=True)
    member.wait_until_logged("no answer within 4s")
    assert member.process.stop(within=_PATIENCE_SECONDS) == 0
    assert '"Stopping takes too long, ending without the rest" seconds=3' in member.process.log_text()


def test_a_second_signal_ends_it_at_once(join, proxy):
    member = join("--deregister")
    proxy.set(silent=True)

    def has_ended():
        os.kill(member.process.pid, signal.SIGTERM)
        return not member.process.running

    eventually(has_ended, every=0.01)
    assert member.process.wait(within=0) == 1  # with 0 it would have said its last words


def test_deregistering_says_what_a_node_may_not_do(join):
    member = join("--deregister")
    assert member.process.stop(within=_PATIENCE_SECONDS) == 0
    log = member.process.log_text()
    assert '"Unable to deregister" err="nodes' in log
    assert "is forbidden" in log
    assert f'"Deregistered" lease="{member.name}"' in log
    assert member.node()["metadata"]["name"] == member.name


def test_deregistering_removes_node_and_lease_where_that_is_allowed(join, plane):
    member = join("--deregister", kubeconfig=plane.admin_kubeconfig)
    assert member.process.stop(within=_PATIENCE_SECONDS) == 0
    assert f'"Deregistered" node="{member.name}"' in member.process.log_text()
    assert f'"Deregistered" lease="{member.name}"' in member.process.log_text()
    for shown in (member.node, member.lease):
        with pytest.raises(Refused, match="not found"):
            shown()
