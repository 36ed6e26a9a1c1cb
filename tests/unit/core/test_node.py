from agent.core.config import Config, Registration
from agent.core.labels import Taint
from agent.core.node import new_node, reconcile_patch, with_own_labels
from tests.fakes import facts

ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"


def registered(**registration):
    node, _ = new_node(facts(config=Config(node_name="n1", registration=Registration(**registration))))
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
        "status": {"phase": "kept"},
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
    assert with_own_labels(node, facts())["metadata"]["labels"] == {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "mine": "kept",
    }
