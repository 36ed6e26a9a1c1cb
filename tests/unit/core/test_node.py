from ipaddress import ip_address

import pytest

from agent.core.labels import Taint
from agent.core.node import is_owned_by, new_csinode, new_node, reconcile_patch, with_own_metadata
from agent.core.quantity import Quantity
from tests.fakes import facts, host_snapshot
from tests.settings import NodeConfig, Registration, Resources

ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"


def registered(**registration):
    node, _ = new_node(facts(config=NodeConfig(node_name="n1", registration=Registration(**registration))))
    return node


def test_a_plain_node_has_five_labels_and_one_annotation():
    node = registered()
    assert node["metadata"] == {
        "name": "n1",
        "labels": {
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
        },
        "annotations": {ATTACH_DETACH: "true"},
    }
    assert node["spec"] == {}


def test_labels_taints_and_provider_id_are_set_at_creation():
    node = registered(
        labels={"a": "b", "kubernetes.io/hostname": "other"},
        taints=(Taint("t", "", "NoExecute"),),
        provider_id="kind://x",
    )
    assert node["metadata"]["labels"]["a"] == "b"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "other"
    assert node["spec"] == {"taints": [{"key": "t", "effect": "NoExecute"}], "providerID": "kind://x"}


def test_a_node_that_is_as_it_should_be_needs_no_patch():
    node = registered()
    assert reconcile_patch(node, node) == {}


def test_registration_mends_default_labels_and_the_annotation_and_nothing_else():
    existing = {
        "metadata": {
            "labels": {"kubernetes.io/hostname": "wrong", "mine": "kept", "topology.kubernetes.io/zone": "old"},
            "annotations": {"mine": "kept"},
        },
        "spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]},
        "status": {"phase": "kept", "capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}},
    }
    fresh = registered(labels={"topology.kubernetes.io/zone": "z1", "ignored": "on-restart"})
    assert reconcile_patch(existing, fresh) == {
        "metadata": {
            "labels": {
                "kubernetes.io/hostname": "n1",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": "z1",
            },
            "annotations": {ATTACH_DETACH: "true"},
        }
    }


def test_two_labels_are_repaired_at_run_time():
    node = {"metadata": {"name": "n1", "labels": {"kubernetes.io/os": "plan9", "mine": "kept"}}}
    assert with_own_metadata(node, facts())["metadata"]["labels"] == {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "mine": "kept",
    }


def existing(capacity, allocatable=None):
    node = registered()
    return {**node, "status": {**node["status"], "capacity": capacity, "allocatable": allocatable or capacity}}


def test_a_node_without_capacity_gets_it_at_once():
    bare = {"metadata": registered()["metadata"], "status": {}}
    assert reconcile_patch(bare, registered())["status"]["capacity"]["cpu"] == "4"


def test_extended_resources_that_somebody_put_on_the_node_stay():
    assert reconcile_patch(existing({"cpu": "4", "example.com/gpu": "2"}), registered()) == {}


def test_extended_resources_that_the_settings_name_do_not_flap():
    config = NodeConfig(node_name="n1", resources=Resources(extended={"example.com/gpu": Quantity.parse("2")}))
    fresh, _ = new_node(facts(config=config))
    assert reconcile_patch(existing({"cpu": "4", "example.com/gpu": "2"}), fresh) == {}


def test_page_sizes_that_are_gone_are_removed_and_new_ones_added():
    fresh, _ = new_node(facts(host=host_snapshot(hugepages_bytes={2**30: 2**30})))
    patch = reconcile_patch(existing({"cpu": "4", "hugepages-2Mi": "0"}), fresh)
    assert patch["status"]["capacity"] == {"hugepages-1Gi": "1Gi", "hugepages-2Mi": None}


@pytest.mark.parametrize(
    ("external", "node_ips", "annotation"),
    [
        (True, ("192.0.2.10",), "192.0.2.10"),
        (True, ("0.0.0.0",), None),
        (True, (), None),
        (True, ("203.0.113.77",), None),
        (True, ("192.0.2.10", "2001:db8::10"), "192.0.2.10,2001:db8::10"),
        (False, ("192.0.2.10",), None),
    ],
)
def test_a_cloud_controller_is_told_the_given_address(external, node_ips, annotation):
    config = NodeConfig(
        node_name="n1",
        node_ips=tuple(ip_address(ip) for ip in node_ips),
        registration=Registration(external_cloud_provider=external),
    )
    node, _ = new_node(facts(config=config))
    assert node["metadata"]["annotations"].get("alpha.kubernetes.io/provided-node-ip") == annotation
    tainted = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
    assert node["spec"].get("taints", []) == ([tainted] if external else [])


def test_a_stale_provided_ip_is_taken_off_at_run_time():
    node = {"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": "1.2.3.4", "mine": "kept"}}}
    assert with_own_metadata(node, facts())["metadata"]["annotations"] == {"mine": "kept"}


def test_an_address_that_is_not_ours_leaves_the_provided_ip_as_it_was():
    node = {"metadata": {"annotations": {"alpha.kubernetes.io/provided-node-ip": "1.2.3.4"}}}
    config = NodeConfig(node_name="n1", node_ips=(ip_address("203.0.113.77"),))
    assert with_own_metadata(node, facts(config=config))["metadata"]["annotations"] == node["metadata"]["annotations"]


def test_without_attach_detach_the_annotation_goes():
    fresh = registered(controller_attach_detach=False)
    assert ATTACH_DETACH not in fresh["metadata"]["annotations"]
    assert reconcile_patch(registered(), fresh) == {"metadata": {"annotations": {ATTACH_DETACH: None}}}


def test_a_csinode_belongs_to_one_node_and_to_no_other_of_its_name():
    csinode = new_csinode("n1", "uid-1")
    assert csinode["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}
    ]
    assert is_owned_by(csinode, "uid-1")
    assert not is_owned_by(csinode, "uid-2")
    assert not is_owned_by({"metadata": {"name": "n1"}}, "uid-1")


def test_a_node_that_shares_its_port_says_where_its_metrics_are_unless_somebody_else_has_said_so():
    shared = facts(config=NodeConfig(node_name="n1", shares_port=True))
    node, _ = new_node(shared)
    path = "metrics.k8s.io/resource-metrics-path"
    assert node["metadata"]["annotations"][path] == "/metrics/nodes/n1/metrics/resource"
    node["metadata"]["annotations"][path] = "/elsewhere"
    assert with_own_metadata(node, shared)["metadata"]["annotations"][path] == "/elsewhere"
