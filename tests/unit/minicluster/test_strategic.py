"""Strategic merge patch, by tables."""

from __future__ import annotations

from typing import Any

import pytest

from agent.minicluster.errors import ApiError
from agent.minicluster.kinds.node import NODES
from agent.minicluster.kinds.pod import PODS
from agent.minicluster.strategic import strategic_merge


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": name, **more} for name in names]


def conditions(original: list[Any], patch: dict[str, Any]) -> list[Any]:
    merged = strategic_merge({"status": {"conditions": original}}, {"status": patch}, NODES.merge_keys)
    return list(merged["status"]["conditions"])


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param(named("A"), {"conditions": named("A", s=1)}, named("A", s=1), id="a known key merges"),
        pytest.param(named("A"), {"conditions": named("B")}, named("A", "B"), id="a new key is appended"),
        pytest.param(
            named("A", s=1), {"conditions": [{"type": "A", "s": None}]}, named("A"), id="null removes a field"
        ),
        pytest.param(
            named("A", "B"), {"conditions": [{"type": "A", "$patch": "delete"}]}, named("B"), id="an element is deleted"
        ),
        pytest.param(
            named("A", "B"),
            {"conditions": [{"type": "C"}, {"$patch": "replace"}]},
            named("C"),
            id="the list is replaced",
        ),
        pytest.param(
            named("A", s=1),
            {"conditions": [{"type": "A", "t": 2, "$patch": "replace"}]},
            [],
            id="the element that says replace is not part of the list",
        ),
        pytest.param(
            named("A", "B"), {"$setElementOrder/conditions": named("B", "A")}, named("B", "A"), id="order alone"
        ),
        pytest.param(
            named("X", "A", "B"),
            {"$setElementOrder/conditions": named("B", "A"), "conditions": named("B")},
            named("X", "B", "A"),
            id="an element of the server stays before those it preceded",
        ),
        pytest.param(
            named("A", "B", "X"),
            {"$setElementOrder/conditions": named("A", "B", "C"), "conditions": named("C")},
            named("A", "B", "C", "X"),
            id="a new element comes before what only the server has",
        ),
    ],
)
def test_a_keyed_list(original: list[Any], patch: dict[str, Any], expected: list[Any]) -> None:
    assert conditions(original, patch) == expected


def test_the_original_is_left_alone() -> None:
    original = {"status": {"conditions": named("A", s=1)}}
    strategic_merge(original, {"status": {"conditions": named("A", s=2)}}, NODES.merge_keys)
    assert original == {"status": {"conditions": named("A", s=1)}}


def test_retain_keys_clears_the_other_fields() -> None:
    original = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}
    merged = strategic_merge(original, patch, PODS.merge_keys)
    assert merged["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/"}}]


def test_lists_inside_keyed_lists_have_keys_too() -> None:
    original = {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B"}]}]}}
    patch = {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "2"}]}]}}
    merged = strategic_merge(original, patch, PODS.merge_keys)
    assert merged["spec"]["containers"][0]["env"] == [{"name": "A", "value": "2"}, {"name": "B"}]


def test_a_list_without_a_key_is_replaced() -> None:
    merged = strategic_merge({"spec": {"taints": [1, 2]}}, {"spec": {"taints": [3]}}, NODES.merge_keys)
    assert merged["spec"]["taints"] == [3]


def test_plain_values_merge_as_a_set() -> None:
    original = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]}}
    assert strategic_merge(original, patch, {})["metadata"]["finalizers"] == ["a", "c"]


def test_a_map_is_replaced_or_deleted_when_it_says_so() -> None:
    original = {"a": {"x": 1, "y": 2}, "b": {"x": 1}}
    patch = {"a": {"$patch": "replace", "z": 3}, "b": {"$patch": "delete"}}
    assert strategic_merge(original, patch, {}) == {"a": {"z": 3}}


@pytest.mark.parametrize(
    "patch",
    [{"a": {"$patch": "invent"}}, {"a": {"$setElementOrder/b": "c"}}, {"status": {"conditions": ["Ready"]}}],
    ids=["unknown directive", "an order that is no list", "an element without a key"],
)
def test_a_patch_that_makes_no_sense_is_a_bad_request(patch: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        strategic_merge({}, patch, NODES.merge_keys)
    assert refused.value.code == 400
