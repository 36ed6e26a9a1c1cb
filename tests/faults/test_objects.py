"""Somebody deletes, takes or fights over what is ours."""

import json
import threading
import time
from datetime import UTC, datetime, timedelta

from tests.cluster.api import NAMESPACES, Refused
from tests.cluster.node_view import owners
from tests.cluster.waiting import eventually


def test_the_lease_is_deleted(join):
    member = join()
    member.delete_lease()
    member.wait_until_recovered()


def test_the_lease_has_another_holder_and_is_kept_fresh_all_the_same(join):
    member = join()
    member.patch_lease({"spec": {"holderIdentity": "somebody-else"}})
    member.wait_until_recovered()
    assert member.lease()["spec"]["holderIdentity"] == "somebody-else"  # as kubelet: the holder is set at creation


def test_a_renewal_of_an_hour_ahead_as_before_a_clock_went_back_is_no_reason_to_be_given_up(join):
    member = join()
    ahead = datetime.now(UTC) + timedelta(hours=1)
    member.patch_lease({"spec": {"renewTime": ahead.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})
    ready = member.condition("Ready")
    time.sleep(25)  # longer than the controller's patience of 20 s
    assert member.renewed_at() > ahead
    assert member.condition("Ready")["lastTransitionTime"] == ready["lastTransitionTime"]


def test_a_time_in_the_lease_that_nobody_can_read_does_not_end_its_renewals(join):
    """An API server prints this one as of the year 10000, and refuses it when it is sent back."""
    member = join()
    member.patch_lease({"spec": {"acquireTime": "9999-12-31T23:59:59.000000-23:59"}})
    assert member.lease()["spec"]["acquireTime"].startswith("10000-")
    member.wait_until_recovered()


def test_others_write_the_lease_without_pause(join):
    member, stop = join(), threading.Event()

    def storm():
        while not stop.is_set():
            member.patch_lease({"metadata": {"annotations": {"storm": str(time.monotonic_ns())}}})

    threads = [threading.Thread(target=storm) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(5)
    stop.set()
    for thread in threads:
        thread.join()
    assert "the object has been modified" in member.process.log_text()
    member.wait_until_recovered()


def test_a_deleted_node_is_registered_again_and_owns_its_lease_and_csinode(join):
    member = join()
    before = member.node()["metadata"]["uid"]
    member.delete_node()
    eventually(lambda: member.node()["metadata"]["uid"] != before and member.is_whole(), within=15)
    eventually(lambda: owners(member.csinode()) == [member.node()["metadata"]["uid"]], within=15)
    time.sleep(3)  # the garbage collector looks at what the dead Node owned
    assert member.is_whole()
    member.wait_until_recovered()


def test_a_node_that_somebody_replaces_is_taken_over(join, plane):
    member = join()
    before = member.node()["metadata"]["uid"]
    metadata = {"name": member.name, "labels": {"made-by": "somebody"}}
    # It deletes the Node and makes it again: a daemon that is too quick would not let it.
    plane.kubectl(
        "replace", "--force", "-f-", input=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    )
    member.wait_until_recovered(also=member.is_whole)
    after = member.node()["metadata"]
    assert after["uid"] != before
    assert after["labels"]["made-by"] == "somebody"
    assert after["labels"]["kubernetes.io/hostname"] == member.name


def test_as_a_kubelet_it_waits_until_somebody_else_makes_the_node(join):
    member = join("--on-node-deleted=idle")
    member.delete_node()
    eventually(lambda: '"Unable to update node status"' in member.process.log_text(), within=15)
    time.sleep(2)
    made = member.create_node()["metadata"]["uid"]
    member.wait_until_recovered(also=member.is_whole)
    assert member.node()["metadata"]["uid"] == made


def test_it_ends_with_its_node_where_that_is_wanted(join):
    member = join("--on-node-deleted=exit")
    member.delete_node()
    eventually(lambda: not member.process.running, within=15)
    assert member.process.stop() == 0
    assert '"Ending, as --on-node-deleted=exit says"' in member.process.log_text()


def test_the_namespace_of_leases_is_gone_for_a_while(join, plane):
    member = join()
    plane.kubectl("delete", "namespace", "kube-node-lease", "--timeout=40s")
    time.sleep(2)
    try:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}}
        member.api.create(NAMESPACES, namespace)
    except Refused:
        pass  # the API server makes it again by itself once a minute
    member.wait_until_recovered()
