from datetime import timedelta

import pytest

from agent.core.conditions import conditions, find_condition
from tests.fakes import START, facts, host_snapshot

BEGAN = "2026-01-02T03:04:05Z"
LATER = "2026-01-02T03:05:05Z"


def after_a_minute(observed, **changes):
    return conditions(facts(observed=observed, now=START + timedelta(minutes=1), **changes))


def test_a_new_node_has_four_conditions_and_ready_is_last():
    told = conditions(facts())["conditions"]
    assert [(c["type"], c["status"], c["reason"]) for c in told] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert {c["lastTransitionTime"] for c in told} == {BEGAN}


@pytest.mark.parametrize(
    ("pressure", "words"),
    [
        # kubelet v1.36: nodestatus/setters.go
        (
            set(),
            [
                "kubelet has sufficient memory available",
                "kubelet has no disk pressure",
                "kubelet has sufficient PID available",
                "kubelet is posting ready status",
            ],
        ),
        (
            {"MemoryPressure", "DiskPressure", "PIDPressure"},
            [
                "kubelet has insufficient memory available",
                "kubelet has disk pressure",
                "kubelet has insufficient PID available",
                "kubelet is posting ready status",
            ],
        ),
    ],
)
def test_the_messages_are_kubelets(pressure, words):
    told = conditions(facts(pressure=frozenset(pressure)))["conditions"]
    assert [condition["message"] for condition in told] == words


def test_a_node_without_a_capacity_that_pods_need_is_not_ready():
    ready = find_condition(conditions(facts(host=host_snapshot(nodefs=None))), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
    assert ready["message"] == "missing node capacity for resources: ephemeral-storage"


def test_a_heartbeat_moves_the_heartbeat_time_and_nothing_else():
    first = conditions(facts())
    again = after_a_minute(first)
    assert [{**c, "lastHeartbeatTime": BEGAN} for c in again["conditions"]] == first["conditions"]
    assert {c["lastHeartbeatTime"] for c in again["conditions"]} == {LATER}


def test_a_flip_has_a_new_reason_and_transition_time():
    flipped = find_condition(
        after_a_minute(conditions(facts()), pressure=frozenset({"MemoryPressure"})), "MemoryPressure"
    )
    assert flipped == {
        "type": "MemoryPressure",
        "status": "True",
        "lastHeartbeatTime": LATER,
        "lastTransitionTime": LATER,
        "reason": "KubeletHasInsufficientMemory",
        "message": "kubelet has insufficient memory available",
    }


def test_a_node_that_was_given_up_comes_back_with_a_new_transition_time():
    gone = {
        "conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": BEGAN, "reason": "NodeStatusUnknown"}
        ]
    }
    ready = find_condition(after_a_minute(gone), "Ready")
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", LATER)


def test_several_problems_are_listed_once_each_and_one_stands_alone():
    assert find_condition(conditions(facts(problems=("a", "b", "a"))), "Ready")["message"] == "[a, b]"
    assert find_condition(conditions(facts(problems=("a",))), "Ready")["message"] == "a"


def test_the_message_of_not_ready_may_change_without_a_transition():
    first = conditions(facts(problems=("a",)))
    ready = find_condition(after_a_minute(first, problems=("b",)), "Ready")
    assert (ready["message"], ready["lastTransitionTime"]) == ("b", BEGAN)


def test_conditions_of_others_keep_their_place_and_content():
    foreign = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
    told = after_a_minute({"conditions": [foreign, *conditions(facts())["conditions"]]})["conditions"]
    assert told[0] == foreign
    assert [c["type"] for c in told] == ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
