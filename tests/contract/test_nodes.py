"""Nodes: status and spec kept apart, patches as a kubelet sends them, and what may not change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.api import JSON_PATCH, MERGE_PATCH, NODES, STRATEGIC, Api
from tests.contract.conditions import condition

INTERNAL = {"type": "InternalIP", "address": "10.0.0.1"}
HOSTNAME = {"type": "Hostname", "address": "host"}


def node(api: Api, name: str, **status: Any) -> Any:
    return api.create(NODES, {"metadata": {"name": name}, "status": status})


def test_a_new_node_is_tainted_until_it_is_ready(api: Api, name: str) -> None:
    own = {"key": "example.com/own", "effect": "NoExecute"}
    made = api.create(NODES, {"metadata": {"name": name}, "spec": {"taints": [own]}})
    assert made["spec"]["taints"] == [own, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def test_a_new_node_keeps_the_status_it_brings(api: Api, name: str) -> None:
    ready = condition("Ready", "True")
    made = node(api, name, conditions=[ready], addresses=[INTERNAL, HOSTNAME])
    assert made["status"]["conditions"] == [ready]
    assert made["status"]["addresses"] == [INTERNAL, HOSTNAME]


def test_allocatable_is_capacity_unless_told(api: Api, name: str) -> None:
    made = node(api, name, capacity={"cpu": "2", "memory": "8Gi"})
    assert made["status"]["allocatable"] == {"cpu": "2", "memory": "8Gi"}


def test_the_main_resource_does_not_change_status(api: Api, name: str) -> None:
    node(api, name, conditions=[condition("Ready", "True")])
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": [condition("Ready", "False")]}}
    patched = api.ask("PATCH", f"{NODES}/{name}", patch).json()
    assert patched["metadata"]["labels"]["a"] == "b"
    assert [one["status"] for one in patched["status"]["conditions"]] == ["True"]


def test_the_status_resource_does_not_change_spec(api: Api, name: str) -> None:
    node(api, name)
    patch = {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "4"}}}
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert "unschedulable" not in patched["spec"]
    assert patched["status"]["capacity"] == {"cpu": "4"}


def test_labels_and_annotations_travel_through_status(api: Api, name: str) -> None:
    node(api, name)
    patch = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert patched["metadata"]["labels"]["a"] == "b"
    assert patched["metadata"]["annotations"]["c"] == "d"


def test_a_heartbeat_changes_one_field_of_each_condition(api: Api, name: str) -> None:
    kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    before = [condition(kind, "False") for kind in kinds]
    node(api, name, conditions=before)
    later = "2026-01-02T03:09:05Z"
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": kind} for kind in kinds],
            "conditions": [{"lastHeartbeatTime": later, "type": kind} for kind in kinds],
        }
    }
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert patched["status"]["conditions"] == [one | {"lastHeartbeatTime": later} for one in before]


def test_a_condition_of_someone_else_survives_a_heartbeat(api: Api, name: str) -> None:
    theirs = condition("NetworkUnavailable", "False")
    node(api, name, conditions=[theirs, condition("Ready", "False")])
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
    }
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert patched["status"]["conditions"] == [theirs, condition("Ready", "True")]


def test_a_new_condition_takes_the_place_the_patch_gives_it(api: Api, name: str) -> None:
    node(api, name, conditions=[condition("DiskPressure", "False"), condition("Ready", "False")])
    order = ["MemoryPressure", "DiskPressure", "Ready"]
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": kind} for kind in order],
            "conditions": [condition("MemoryPressure", "False")],
        }
    }
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert [one["type"] for one in patched["status"]["conditions"]] == order


def test_a_condition_is_deleted_by_its_type(api: Api, name: str) -> None:
    node(api, name, conditions=[condition("OutOfDisk", "False"), condition("Ready", "True")])
    patch = {"status": {"conditions": [{"type": "OutOfDisk", "$patch": "delete"}]}}
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert [one["type"] for one in patched["status"]["conditions"]] == ["Ready"]


def test_addresses_merge_by_type(api: Api, name: str) -> None:
    node(api, name, addresses=[INTERNAL, HOSTNAME])
    patch = {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}}
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert patched["status"]["addresses"] == [{"type": "InternalIP", "address": "10.0.0.2"}, HOSTNAME]


def test_addresses_of_one_type_need_the_replace_directive(api: Api, name: str) -> None:
    node(api, name, addresses=[INTERNAL, HOSTNAME])
    two = [INTERNAL, {"type": "InternalIP", "address": "fd00::1"}, HOSTNAME]
    patch = {"status": {"addresses": [*two, {"$patch": "replace"}]}}
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert patched["status"]["addresses"] == two


def test_a_map_is_replaced_when_the_patch_says_so(api: Api, name: str) -> None:
    node(api, name, capacity={"cpu": "2", "example.com/gpu": "1"})
    patch = {"status": {"capacity": {"cpu": "4", "$patch": "replace"}}}
    patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
    assert patched["status"]["capacity"] == {"cpu": "4"}


def test_null_removes_an_entry_of_a_map(api: Api, name: str) -> None:
    node(api, name, capacity={"cpu": "2", "hugepages-2Mi": "0"})
    patched = api.ask("PATCH", f"{NODES}/{name}/status", {"status": {"capacity": {"hugepages-2Mi": None}}}).json()
    assert patched["status"]["capacity"] == {"cpu": "2"}


def test_taints_are_one_value_to_a_strategic_patch(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}, "spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}})
    only = [{"key": "b", "effect": "NoExecute"}]
    patched = api.ask("PATCH", f"{NODES}/{name}", {"spec": {"taints": only}}).json()
    assert patched["spec"]["taints"] == only


def test_finalizers_merge_and_are_deleted_as_plain_values(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name, "finalizers": ["example.com/a", "example.com/b"]}})
    added = api.ask("PATCH", f"{NODES}/{name}", {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}).json()
    assert sorted(added["metadata"]["finalizers"]) == ["example.com/a", "example.com/b", "example.com/c"]
    less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}
    patched = api.ask("PATCH", f"{NODES}/{name}", less).json()
    assert patched["metadata"]["finalizers"] == ["example.com/c"]
    api.ask("PATCH", f"{NODES}/{name}", {"metadata": {"finalizers": None}})


def test_a_merge_patch_replaces_lists(api: Api, name: str) -> None:
    node(api, name, conditions=[condition("Ready", "True"), condition("DiskPressure", "False")])
    only = [condition("Ready", "False")]
    patched = api.ask(
        "PATCH", f"{NODES}/{name}/status", {"status": {"conditions": only}}, content_type=MERGE_PATCH
    ).json()
    assert patched["status"]["conditions"] == only


def test_a_json_patch_works_by_position(api: Api, name: str) -> None:
    node(api, name, addresses=[INTERNAL, HOSTNAME])
    operations = [
        {"op": "test", "path": "/status/addresses/1/type", "value": "Hostname"},
        {"op": "replace", "path": "/status/addresses/1/address", "value": "other"},
        {"op": "add", "path": "/status/addresses/-", "value": {"type": "ExternalIP", "address": "192.0.2.1"}},
        {"op": "remove", "path": "/status/addresses/0"},
        {"op": "add", "path": "/metadata/labels", "value": {"example.com/x": "1"}},
    ]
    answer = api.ask("PATCH", f"{NODES}/{name}/status", operations, content_type=JSON_PATCH)
    assert answer.status == 200, answer.json()
    addresses = [(one["type"], one["address"]) for one in answer.json()["status"]["addresses"]]
    assert addresses == [("Hostname", "other"), ("ExternalIP", "192.0.2.1")]
    assert answer.json()["metadata"]["labels"] == {"example.com/x": "1"}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/metadata/name", "value": "another"}, id="test fails"),
        pytest.param({"op": "remove", "path": "/metadata/nothing/here"}, id="nothing there"),
        pytest.param({"op": "invent", "path": "/metadata/name"}, id="unknown operation"),
    ],
)
def test_a_json_patch_that_does_not_fit_is_unprocessable(api: Api, name: str, operation: dict[str, str]) -> None:
    node(api, name)
    answer = api.ask("PATCH", f"{NODES}/{name}", [operation], content_type=JSON_PATCH)
    message = "the server rejected our request due to an error in our request"
    assert answer.refusal == (422, "Invalid", message)


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        pytest.param([], MERGE_PATCH, id="a list as merge patch"),
        pytest.param(3, STRATEGIC, id="a number as strategic patch"),
        pytest.param({}, JSON_PATCH, id="a map as JSON patch"),
        pytest.param(b"{", MERGE_PATCH, id="not JSON"),
    ],
)
def test_a_patch_of_the_wrong_shape_is_a_bad_request(api: Api, name: str, patch: Any, content_type: str) -> None:
    node(api, name)
    assert api.ask("PATCH", f"{NODES}/{name}", patch, content_type=content_type).refusal[:2] == (400, "BadRequest")


def test_a_patch_needs_a_patch_type(api: Api, name: str) -> None:
    node(api, name)
    answer = api.ask("PATCH", f"{NODES}/{name}", {}, content_type="application/json")
    assert answer.refusal == (415, "UnsupportedMediaType", "415: Unsupported Media Type")


def test_a_patch_that_changes_nothing_keeps_the_version(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}, "status": {"conditions": [condition("Ready", "True")]}})
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    settled = api.ask("PATCH", f"{NODES}/{name}/status", {"metadata": {"annotations": {"settled": "yes"}}}).json()
    for _ in range(20):  # the controllers of both servers may write once or twice in between
        patched = api.ask("PATCH", f"{NODES}/{name}/status", patch).json()
        again = api.ask("PATCH", f"{NODES}/{name}/status", {}).json()
        if patched["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]:
            break
    assert patched["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    assert settled["status"]["conditions"] == again["status"]["conditions"]


def test_a_patch_can_insist_on_a_version(api: Api, name: str) -> None:
    node(api, name)
    answer = api.ask("PATCH", f"{NODES}/{name}", {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}})
    assert answer.refusal[:2] == (409, "Conflict")
    assert answer.refusal[2].startswith(
        f'Operation cannot be fulfilled on nodes "{name}": the object has been modified'
    )


def test_a_patch_can_insist_on_a_uid(api: Api, name: str) -> None:
    node(api, name)
    answer = api.ask("PATCH", f"{NODES}/{name}/status", {"metadata": {"uid": "another"}})
    fault = 'metadata.uid: Invalid value: "another": field is immutable'
    assert answer.refusal == (422, "Invalid", f'Node "{name}" is invalid: {fault}')
