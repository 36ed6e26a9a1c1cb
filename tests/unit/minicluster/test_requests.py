"""Selectors, where the contract does not reach."""

from __future__ import annotations

import pytest

from agent.minicluster.event_strategy import EVENTS
from agent.minicluster.node_strategy import NODES
from agent.minicluster.requests import everything, field_selector, label_selector
from agent.minicluster.status_errors import StatusError


def labelled(**labels: str) -> dict[str, object]:
    return {"metadata": {"labels": labels}}


@pytest.mark.parametrize("text", ["", "  "])
def test_nothing_asked_is_everything(text: str) -> None:
    assert label_selector(text) is everything


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("a=1,b!=2", True),
        ("a in (1),b", False),
        ("a in ( 1 , 2 )", True),
        ("a notin (1,2)", False),
        ("example.com/role=x-y_z.0", True),
        ("a>0,a<2", True),
        ("a>1", False),
        ("word>0", False),
        ("b!=", True),
        ("!in-not", True),
    ],
)
def test_labels(text: str, matches: bool) -> None:
    obj = labelled(**{"a": "1", "example.com/role": "x-y_z.0", "word": "x"})
    assert label_selector(text)(obj) is matches


@pytest.mark.parametrize("text", ["a in 1", "a in (1", "=b", "a=b c", ",", "a>x"])
def test_unreadable_labels(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        label_selector(text)
    assert refused.value.code == 400


def test_a_comma_in_a_value_is_escaped() -> None:
    event = {"metadata": {"name": "n"}, "involvedObject": {}, "reason": "a,b", "type": "Normal"}
    assert field_selector(r"reason=a\,b,type=Normal", EVENTS)(event)
    assert not field_selector(r"reason=a\,b,type!=Normal", EVENTS)(event)


def test_cluster_objects_have_no_namespace_to_select() -> None:
    with pytest.raises(StatusError, match="field label not supported"):
        field_selector("metadata.namespace=x", NODES)
