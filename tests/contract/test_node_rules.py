"""Nodes: what the API server refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH, NODES, Api

INTERNAL = {"type": "InternalIP", "address": "10.0.0.1"}


def node(api: Api, name: str, **status: Any) -> Any:
    return api.create(NODES, {"metadata": {"name": name}, "status": status})


@pytest.mark.parametrize(
    ("field", "first", "second"),
    [("providerID", "fake://one", "fake://two"), ("podCIDR", "10.9.1.0/24", "10.9.2.0/24")],
)
def test_some_fields_are_set_once(api: Api, name: str, field: str, first: str, second: str) -> None:
    def spec(value: str) -> dict[str, Any]:
        return {field: value} | ({"podCIDRs": [value]} if field == "podCIDR" else {})

    api.create(NODES, {"metadata": {"name": name}, "spec": spec(first)})
    answer = api.ask("PATCH", f"{NODES}/{name}", {"spec": spec(second)}, content_type=MERGE_PATCH)
    reported = "podCIDRs" if field == "podCIDR" else field
    fault = f'spec.{reported}: Forbidden: node updates may not change {field} except from "" to valid'
    assert answer.refusal == (422, "Invalid", f'Node "{name}" is invalid: {fault}')


def test_an_address_is_told_once(api: Api, name: str) -> None:
    node(api, name)
    patch = {"status": {"addresses": [INTERNAL, INTERNAL]}}
    answer = api.ask("PATCH", f"{NODES}/{name}/status", patch, content_type=MERGE_PATCH)
    fault = 'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}'
    assert answer.refusal == (422, "Invalid", f'Node "{name}" is invalid: {fault}')


@pytest.mark.parametrize(
    ("features", "fault"),
    [
        pytest.param(["B", "A"], 'Invalid value: "A": list must be sorted alphabetically', id="unsorted"),
        pytest.param(["A", "A"], 'Duplicate value: "A"', id="twice"),
    ],
)
def test_declared_features_are_sorted_and_unique(api: Api, name: str, features: list[str], fault: str) -> None:
    node(api, name)
    answer = api.ask(
        "PATCH", f"{NODES}/{name}/status", {"status": {"declaredFeatures": features}}, content_type=MERGE_PATCH
    )
    assert answer.refusal == (422, "Invalid", f'Node "{name}" is invalid: status.declaredFeatures[1]: {fault}')


@pytest.mark.parametrize(
    ("amount", "fault"),
    [
        pytest.param({"cpu": "-1"}, 'cpu: Invalid value: "-1": must be greater than or equal to 0', id="negative"),
        pytest.param({"pods": "1500m"}, 'pods: Invalid value: "1500m": must be an integer', id="half a pod"),
    ],
)
def test_capacity_is_a_sensible_amount(api: Api, name: str, amount: dict[str, str], fault: str) -> None:
    node(api, name, capacity={"memory": "1Gi"})
    answer = api.ask("PATCH", f"{NODES}/{name}/status", {"status": {"capacity": amount}})
    assert answer.refusal == (422, "Invalid", f'Node "{name}" is invalid: status.capacity.{fault}')


def test_quantities_parse(api: Api, name: str) -> None:
    rule = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    answer = api.ask("POST", NODES, {"metadata": {"name": name}, "status": {"capacity": {"cpu": "2x"}}})
    assert answer.refusal == (400, "BadRequest", f'Node in version "v1" cannot be handled as a Node: {rule}')


@pytest.mark.parametrize(
    ("taint", "fault"),
    [
        pytest.param({"key": "a"}, "effect: Required value", id="no effect"),
        pytest.param(
            {"key": "a", "effect": "Never"},
            'effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
            id="unknown effect",
        ),
    ],
)
def test_a_taint_has_a_known_effect(api: Api, name: str, taint: dict[str, str], fault: str) -> None:
    node(api, name)
    answer = api.ask("PATCH", f"{NODES}/{name}", {"spec": {"taints": [taint]}}, content_type=MERGE_PATCH)
    assert answer.refusal == (422, "Invalid", f'Node "{name}" is invalid: metadata.taints[0].{fault}')


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"a": "c d"}], ids=["key", "value"])
def test_labels_are_checked(api: Api, name: str, labels: dict[str, str]) -> None:
    code, reason, message = api.ask("POST", NODES, {"metadata": {"name": name, "labels": labels}}).refusal
    assert (code, reason) == (422, "Invalid")
    assert message.startswith(f'Node "{name}" is invalid: metadata.labels: Invalid value: ')
