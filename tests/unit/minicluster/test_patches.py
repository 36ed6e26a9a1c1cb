"""JSON merge patch and JSON patch by the examples of their RFCs, and strategic merge patch by tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.minicluster.node_strategy import NODES
from agent.minicluster.patches import json_merge_patch, json_patch, strategic_merge
from agent.minicluster.pod_strategy import PODS
from agent.minicluster.status_errors import StatusError


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        (["a", "b"], {"a": "b"}, {"a": "b"}),
    ],
)
def test_merge_patch(original: Any, patch: Any, expected: Any) -> None:
    assert json_merge_patch(original, patch) == expected


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
maps = st.dictionaries(st.text(max_size=2), values, max_size=4)


@given(maps, maps)
def test_merging_twice_is_merging_once(original: dict[str, Any], patch: dict[str, Any]) -> None:
    once = json_merge_patch(original, patch)
    assert json_merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/b", "value": 1}, {"a": [1, 2], "x/y": 0, "b": 1}),
        ({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2], "x/y": 0}),
        ({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9], "x/y": 0}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2], "x/y": 0}),
        ({"op": "replace", "path": "/a/1", "value": 9}, {"a": [1, 9], "x/y": 0}),
        ({"op": "replace", "path": "/x~1y", "value": 9}, {"a": [1, 2], "x/y": 9}),
        ({"op": "move", "from": "/a/0", "path": "/b"}, {"a": [2], "x/y": 0, "b": 1}),
        ({"op": "copy", "from": "/a", "path": "/b"}, {"a": [1, 2], "x/y": 0, "b": [1, 2]}),
        ({"op": "test", "path": "/a/0", "value": 1}, {"a": [1, 2], "x/y": 0}),
    ],
)
def test_json_patch(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    assert json_patch({"a": [1, 2], "x/y": 0}, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/a/5", "value": 1},
        {"op": "add", "path": "/no/where", "value": 1},
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "replace", "path": "a", "value": 1},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "test", "path": "/a", "value": 1},
        {"op": "add", "path": "/a/-"},
        {"path": "/a"},
    ],
)
def test_what_does_not_fit_is_refused_whole(operation: dict[str, Any]) -> None:
    document = {"a": [1, 2]}
    with pytest.raises(StatusError) as refused:
        json_patch(document, [{"op": "add", "path": "/z", "value": 1}, operation])
    assert refused.value.code == 422
    assert document == {"a": [1, 2]}


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
    with pytest.raises(StatusError) as refused:
        strategic_merge({}, patch, NODES.merge_keys)
    assert refused.value.code == 400
