"""The control plane itself fails."""

import os
import signal
import time

import pytest

from tests.cluster.api import Refused
from tests.cluster.waiting import eventually
from tests.faults.etcd import alarm


def test_the_api_server_is_away_for_a_while_and_comes_back(join, plane):
    member = join()
    plane.stop_component("kube-apiserver")
    time.sleep(6)
    plane.start_component("kube-apiserver")
    member.wait_until_recovered()


def test_etcd_has_no_space_left(join, plane):
    member = join()
    alarm(plane.layout.etcd, on=True)
    try:
        eventually(lambda: "database space exceeded" in member.process.log_text(), within=10)
        time.sleep(3)
    finally:
        alarm(plane.layout.etcd, on=False)
    member.wait_until_recovered()


def test_a_stop_in_the_middle_of_an_outage_takes_no_longer_than_its_deadline(join, proxy):
    member = join()
    proxy.set(silent=True)
    time.sleep(1)
    began = time.monotonic()
    assert member.process.stop(within=15) == 0
    assert time.monotonic() - began < 8


def test_a_second_signal_ends_it_at_once(join, proxy):
    member = join("--deregister")
    eventually(member.lease)  # which may come after the Node
    proxy.set(silent=True)
    for _ in range(2):
        os.kill(member.process.pid, signal.SIGTERM)
        time.sleep(0.3)
    began = time.monotonic()
    assert member.process.stop(within=10) == 1
    assert time.monotonic() - began < 2


def test_deregistering_says_what_a_node_may_not_do(join):
    member = join("--deregister")
    eventually(member.lease)  # which may come after the Node
    assert member.process.stop() == 0
    log = member.process.log_text()
    assert '"Unable to deregister" err="nodes' in log
    assert "is forbidden" in log
    assert f'"Deregistered" lease="{member.name}"' in log
    assert member.node()["metadata"]["name"] == member.name


def test_deregistering_removes_node_and_lease_where_that_is_allowed(join, plane, tmp_path):
    member = join("--deregister", kubeconfig=plane.admin_kubeconfig)
    eventually(member.lease)
    assert member.process.stop() == 0
    assert f'"Deregistered" node="{member.name}"' in member.process.log_text()
    assert f'"Deregistered" lease="{member.name}"' in member.process.log_text()
    for shown in (member.node, member.lease):
        with pytest.raises(Refused, match="not found"):
            shown()
