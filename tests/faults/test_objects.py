"""Somebody deletes, takes or fights over what is ours."""

import json
import threading
import time

import pytest

from tests.cluster.api import LEASES
from tests.cluster.waiting import eventually

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_the_lease_is_deleted(member):
    before = member.lease()["metadata"]["uid"]
    member.delete_lease()
    eventually(lambda: member.lease()["metadata"]["uid"] != before)
    member.wait_until_recovered()


def test_the_lease_has_another_holder_and_is_kept_fresh_all_the_same(member):
    member.patch_lease({"spec": {"holderIdentity": "somebody-else"}})
    member.wait_until_recovered()
    assert member.lease()["spec"]["holderIdentity"] == "somebody-else"  # as kubelet: the holder is set at creation


def test_a_time_in_the_lease_that_nobody_can_read_does_not_end_its_renewals(member):
    """An API server prints this one as of the year 10000, and refuses it when it is sent back."""
    unreadable = {"spec": {"acquireTime": "9999-12-31T23:59:59.000000-23:59"}}
    patched = member.api.patch(f"{LEASES}/{member.name}", unreadable)
    assert patched["spec"]["acquireTime"].startswith("10000-")
    member.wait_until_recovered()


@pytest.fixture
def storm(member):
    """Three who write the lease without pause, until the end of the test or of the returned event."""
    stop = threading.Event()

    def write():
        while not stop.is_set():
            member.patch_lease({"metadata": {"annotations": {"storm": str(time.monotonic_ns())}}})

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    yield stop
    stop.set()
    for thread in threads:
        thread.join()


def test_others_write_the_lease_without_pause(member, storm):
    # At least once for each heartbeat: what it has of the lease is never the latest.
    member.wait_until_logged('"Failed to update lease"', "the object has been modified", times=3)
    storm.set()
    member.wait_until_recovered()


def test_a_deleted_node_is_registered_again_and_owns_its_lease_and_csinode(member, plane):
    before = member.node()["metadata"]["uid"]
    # When the garbage collector has taken this, it has seen to what else the dead Node owned.
    owner = {"apiVersion": "v1", "kind": "Node", "name": member.name, "uid": before}
    plane.api.create(_CONFIG_MAPS, {"metadata": {"name": f"witness-{before}", "ownerReferences": [owner]}})
    member.delete_node()
    eventually(lambda: member.node()["metadata"]["uid"] != before)
    eventually(lambda: plane.api.ask("GET", f"{_CONFIG_MAPS}/witness-{before}").status == 404)
    member.wait_until_recovered(also=member.is_described)


def test_a_node_that_somebody_replaces_is_taken_over(member, plane):
    before = member.node()["metadata"]["uid"]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": member.name, "labels": {"made-by": "somebody"}}}
    # It deletes the Node and makes it again, for which a daemon leaves it half a second: too little for a kubectl on a
    # busy machine, so here it gets as long as it takes; unit/controllers/test_registration.py has the half second.
    member.stand_still()
    plane.kubectl("replace", "--force", "-f-", input=json.dumps(node))
    member.go_on()
    member.wait_until_recovered(also=member.is_described)
    after = member.node()["metadata"]
    assert after["uid"] != before
    assert after["labels"]["made-by"] == "somebody"
    assert after["labels"]["kubernetes.io/hostname"] == member.name


def test_as_a_kubelet_it_waits_until_somebody_else_makes_the_node(join):
    member = join("--on-node-deleted=idle")
    member.delete_node()
    member.wait_until_logged('"Unable to update node status"', times=2)
    made = member.create_node()["metadata"]["uid"]  # refused if there were one already
    member.wait_until_recovered()
    assert member.node()["metadata"]["uid"] == made


def test_it_ends_with_its_node_where_that_is_wanted(join):
    member = join("--on-node-deleted=exit")
    member.delete_node()
    assert member.process.wait(within=120) == 0
    assert '"Ending, as --on-node-deleted=exit says"' in member.process.log_text()
