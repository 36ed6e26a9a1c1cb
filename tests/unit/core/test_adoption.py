import pytest

from agent.core.adoption import AdoptionSelector, adopted_plan
from agent.core.errors import ConfigError
from agent.core.node import OWN_ADDRESSES, with_own_metadata
from agent.core.nodestatus import desired_status
from tests.cluster.autoscaled import cluster_autoscaler_node, karpenter_node
from tests.fakes import facts
from tests.settings import NodeConfig, Registration

SELECTOR = AdoptionSelector("kwok.x-k8s.io/node", "fake")
ADDRESSES = [{"type": "InternalIP", "address": "10.9.9.9"}]


def created(shape=karpenter_node, **status):
    node = shape("n1")
    node["metadata"]["uid"] = "u1"
    node["status"] |= status
    return node


def facts_of(node, base=None):
    plan = adopted_plan(node, base or NodeConfig())
    return facts(config=plan.config, host=plan.machine, observed=node["status"])


@pytest.mark.parametrize(
    ("labels", "annotations", "is_selected"),
    [
        ({"kwok.x-k8s.io/node": "fake"}, {}, True),
        ({}, {"kwok.x-k8s.io/node": "fake"}, True),
        ({"kwok.x-k8s.io/node": "real"}, {"kwok.x-k8s.io/node": "fake"}, True),
        ({"kwok.x-k8s.io/node": "real"}, {}, False),
        ({"fake": "kwok.x-k8s.io/node"}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_label_or_an_annotation_selects_a_node(labels, annotations, is_selected):
    assert SELECTOR.matches({"metadata": {"name": "n", "labels": labels, "annotations": annotations}}) is is_selected


def test_a_node_without_labels_and_annotations_is_not_selected():
    assert not SELECTOR.matches({"metadata": {"name": "n"}})


@pytest.mark.parametrize("text", ["", "kwok.x-k8s.io/node", "=fake", "a b=c", "a=b c", "a=b=c", "/a=b"])
def test_what_is_no_selector_is_an_error_that_names_the_flag(text):
    with pytest.raises(ConfigError, match="--adopt"):
        AdoptionSelector.parse("--adopt", text)


def test_a_selector_is_a_key_and_a_value():
    assert AdoptionSelector.parse("--adopt", "kwok.x-k8s.io/node=fake") == SELECTOR
    assert str(SELECTOR) == "kwok.x-k8s.io/node=fake"


@pytest.mark.parametrize("shape", [karpenter_node, cluster_autoscaler_node])
def test_resources_stay_as_their_creator_wrote_them_and_what_is_missing_is_added(shape):
    node = created(shape)
    desired = desired_status(facts_of(node))
    assert desired.errors == ()
    for kind in ("capacity", "allocatable"):
        assert desired.status[kind].items() >= node["status"][kind].items()
        assert desired.status[kind].keys() >= {"cpu", "memory", "pods", "ephemeral-storage"}
    assert next(entry for entry in desired.status["conditions"] if entry["type"] == "Ready")["status"] == "True"


def test_resources_that_the_creator_changes_later_stay_too():
    adopted = facts_of(created())
    status = {**adopted.observed, "capacity": {"cpu": "99", "pods": "5"}}
    later = desired_status(facts(config=adopted.config, host=adopted.host, observed=status)).status
    assert (later["capacity"]["cpu"], later["capacity"]["pods"]) == ("99", "5")


def test_nothing_is_registered_and_a_deleted_node_does_not_return():
    base = NodeConfig(registration=Registration(on_node_deleted="exit", deregister=True, labels={"a": "b"}))
    registration = adopted_plan(created(), base).config.registration
    assert not registration.register_node
    assert not registration.deregister
    assert registration.on_node_deleted == "idle"


def test_the_labels_of_an_adopted_node_are_left_alone():
    node = created()
    shown = with_own_metadata(node, facts_of(node))
    assert shown["metadata"]["labels"] == node["metadata"]["labels"]


def test_addresses_of_others_stay_and_ours_are_set_again_wherever_the_next_process_is():
    node = created(addresses=ADDRESSES)
    assert desired_status(facts_of(node)).status["addresses"] == ADDRESSES
    assert OWN_ADDRESSES not in with_own_metadata(node, facts_of(node))["metadata"]["annotations"]
    bare = created()
    bare = with_own_metadata(bare, facts_of(bare))
    assert bare["metadata"]["annotations"][OWN_ADDRESSES] == "true"
    moved = {**bare, "status": {**bare["status"], "addresses": ADDRESSES}}
    assert desired_status(facts_of(moved)).status["addresses"] != ADDRESSES


def test_the_machine_has_the_architecture_and_the_size_of_the_node():
    machine = adopted_plan(created(), NodeConfig()).machine
    assert (machine.architecture, machine.memory_bytes, machine.cpu_millicores) == ("arm64", 32 * 2**30, 8000)
    assert machine.machine_id


def test_a_quantity_that_cannot_be_one_is_an_error():
    with pytest.raises(ValueError, match="cpu"):
        adopted_plan(created(capacity={"cpu": "many"}), NodeConfig())
