"""JSON merge patch and JSON patch, by the examples of their RFCs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.minicluster.errors import ApiError
from agent.minicluster.patches import json_patch, merge_patch


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
    assert merge_patch(original, patch) == expected


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
maps = st.dictionaries(st.text(max_size=2), values, max_size=4)


@given(maps, maps)
def test_merging_twice_is_merging_once(original: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(original, patch)
    assert merge_patch(once, patch) == once


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
    with pytest.raises(ApiError) as refused:
        json_patch(document, [{"op": "add", "path": "/z", "value": 1}, operation])
    assert refused.value.code == 422
    assert document == {"a": [1, 2]}
