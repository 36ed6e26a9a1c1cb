from datetime import timedelta

from agent.core.nodestatus import desired_status
from agent.core.patch import is_changed, node_patch
from agent.minicluster.node_strategy import NODES
from agent.minicluster.patches import strategic_merge
from tests.fakes import START, facts, host_snapshot


def node(status, **metadata):
    return {"metadata": {"name": "n1", **metadata}, "status": status}


def test_a_heartbeat_patch_is_the_one_a_kubelet_sends():
    before = desired_status(facts()).status
    after = desired_status(facts(observed=before, now=START + timedelta(minutes=5))).status
    patch = node_patch(node(before), node(after))
    types = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    assert patch == {
        "status": {
            "$setElementOrder/conditions": [{"type": kind} for kind in types],
            "conditions": [{"lastHeartbeatTime": "2026-01-02T03:09:05Z", "type": kind} for kind in types],
        }
    }
    assert not is_changed(patch)


def test_two_computations_within_a_second_differ_in_nothing():
    status = desired_status(facts()).status
    assert node_patch(node(status), node(status)) == {}
    assert not is_changed({})


def test_a_changed_capacity_sends_that_resource_alone():
    before = desired_status(facts()).status
    after = desired_status(facts(observed=before, host=host_snapshot(cpu_millicores=8000))).status
    patch = node_patch(node(before), node(after))
    assert patch == {"status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}}
    assert is_changed(patch)


def test_the_same_amount_written_otherwise_is_no_change():
    assert node_patch(node({"capacity": {"memory": "1Gi"}}), node({"capacity": {"memory": "1048576Ki"}})) == {}


def test_changed_addresses_replace_the_whole_list():
    old = [{"type": "InternalIP", "address": "192.0.2.1"}]
    new = [{"type": "InternalIP", "address": "192.0.2.2"}]
    assert node_patch(node({"addresses": old}), node({"addresses": new})) == {
        "status": {"addresses": [*new, {"$patch": "replace"}]}
    }
    assert node_patch(node({}), node({"addresses": new})) == {"status": {"addresses": new}}


def test_labels_and_annotations_travel_with_the_status():
    patch = node_patch(
        node({}, labels={"a": "1", "b": "2"}), node({}, labels={"a": "1", "b": "3"}, annotations={"c": "4"})
    )
    assert patch == {"metadata": {"labels": {"b": "3"}, "annotations": {"c": "4"}}}
    assert is_changed(patch)


def test_what_is_gone_is_taken_off():
    before = node({"capacity": {"cpu": "4", "hugepages-2Mi": "2Gi"}}, labels={"a": "1", "b": "2"})
    patch = node_patch(before, node({"capacity": {"cpu": "4"}}, labels={"a": "1"}))
    assert patch == {"metadata": {"labels": {"b": None}}, "status": {"capacity": {"hugepages-2Mi": None}}}


def test_absent_and_empty_are_the_same():
    assert node_patch(node({"images": []}), node({})) == {}


def test_a_patch_applied_gives_what_was_desired():
    before = desired_status(facts()).status
    smaller = host_snapshot(cpu_millicores=2000, kernel_version="6.2")
    changes = {"host": smaller, "pressure": frozenset({"DiskPressure"})}
    after = desired_status(facts(observed=before, now=START + timedelta(minutes=1), **changes)).status
    assert strategic_merge(node(before), node_patch(node(before), node(after)), NODES.merge_keys) == node(after)
