"""Lists: field and label selectors, pages, versions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.cluster.api import EVENTS, LEASES, NODES, PODS, Api


def names(api: Api, path: str, **query: str) -> list[str]:
    answer = api.ask("GET", path, **query)
    assert answer.status == 200, answer.json()
    return [one["metadata"]["name"] for one in answer.json()["items"]]


@pytest.fixture
def three(api: Api, name: str) -> AsyncIterator[str]:
    """Three leases that differ in their labels."""
    for suffix, labels in (("a", {"tier": "web", "n": "1"}), ("b", {"tier": "db", "n": "20"}), ("c", {})):
        metadata = {"name": f"{name}-{suffix}", "labels": {"test": name, **labels}}
        api.create(LEASES, {"metadata": metadata, "spec": {}})
    yield name
    api.ask("DELETE", LEASES, labelSelector=f"test={name}")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("tier=web", "a"),
        ("tier==web", "a"),
        ("tier!=web", "bc"),
        ("tier", "ab"),
        ("!tier", "c"),
        ("tier in (web, db)", "ab"),
        ("tier notin (web)", "bc"),
        ("n>5", "b"),
        ("n<5", "a"),
        ("tier in (web,db),n<5", "a"),
        ("tier=", ""),
    ],
)
def test_label_selectors(api: Api, three: str, selector: str, found: str) -> None:
    assert names(api, LEASES, labelSelector=f"test={three},{selector}") == [f"{three}-{one}" for one in found]


def test_an_unreadable_label_selector_is_a_bad_request(api: Api) -> None:
    answer = api.ask("GET", NODES, labelSelector="a in b")
    assert answer.refusal == (400, "BadRequest", "unable to parse requirement: found 'b' expected: '('")


def test_a_node_is_found_by_its_name(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    assert names(api, NODES, fieldSelector=f"metadata.name={name}") == [name]


def test_nodes_are_found_by_their_schedulability(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}, "spec": {"unschedulable": True}})
    assert name in names(api, NODES, fieldSelector="spec.unschedulable=true")
    assert name not in names(api, NODES, fieldSelector="spec.unschedulable=false")


@pytest.mark.parametrize(
    ("path", "selector", "message"),
    [
        pytest.param(NODES, "spec.foo=bar", "field label not supported: spec.foo", id="node"),
        pytest.param(
            LEASES,
            "spec.foo=bar",
            '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="lease",
        ),
        pytest.param(NODES, "foo", "invalid selector: 'foo'; can't understand 'foo'", id="unreadable"),
    ],
)
def test_an_unknown_field_is_a_bad_request(api: Api, path: str, selector: str, message: str) -> None:
    assert api.ask("GET", path, fieldSelector=selector).refusal == (400, "BadRequest", message)


def test_events_are_found_by_their_object(api: Api, name: str) -> None:
    for suffix, reason in (("a", "Starting"), ("b", "Rebooted")):
        about = {"kind": "Node", "name": name, "uid": f"{name}-uid"}
        api.create(EVENTS, {"metadata": {"name": f"{name}.{suffix}"}, "involvedObject": about, "reason": reason})
    about_node = f"involvedObject.kind=Node,involvedObject.name={name}"
    assert names(api, EVENTS, fieldSelector=about_node) == [f"{name}.a", f"{name}.b"]
    assert names(api, EVENTS, fieldSelector=f"{about_node},reason=Rebooted") == [f"{name}.b"]
    assert names(api, EVENTS, fieldSelector=f"involvedObject.uid={name}-uid,reason!=Rebooted") == [f"{name}.a"]


def test_pods_are_found_by_their_node(api: Api, name: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": name}
    api.create(NODES, {"metadata": {"name": name}})
    pod = {"metadata": {"name": name}, "spec": spec | {"automountServiceAccountToken": False}}
    api.create(PODS, pod)
    everywhere, on_node = "/api/v1/pods", f"spec.nodeName={name}"
    assert names(api, everywhere, fieldSelector=on_node) == [name]
    running = f"{on_node},status.phase!=Failed,status.phase!=Succeeded"
    assert names(api, everywhere, fieldSelector=running) == [name]
    assert names(api, everywhere, fieldSelector=f"{on_node},status.phase=Running") == []


def test_a_list_has_a_version_and_bare_items(api: Api, three: str) -> None:
    answer = api.ask("GET", LEASES, labelSelector=f"test={three}", resourceVersion="0")
    assert (answer.json()["kind"], answer.json()["apiVersion"]) == ("LeaseList", "coordination.k8s.io/v1")
    assert int(answer.json()["metadata"]["resourceVersion"]) > 0
    assert not any("kind" in one or "apiVersion" in one for one in answer.json()["items"])


def test_an_empty_list_is_a_list(api: Api, name: str) -> None:
    answer = api.ask("GET", NODES, labelSelector=f"test={name}")
    assert answer.json()["items"] == []


def test_a_list_comes_in_pages(api: Api, three: str) -> None:
    selector = f"test={three}"
    first = api.ask("GET", LEASES, labelSelector=selector, limit="2").json()
    assert [one["metadata"]["name"] for one in first["items"]] == [f"{three}-a", f"{three}-b"]
    token = first["metadata"]["continue"]
    second = api.ask("GET", LEASES, **{"labelSelector": selector, "limit": "2", "continue": token}).json()
    assert [one["metadata"]["name"] for one in second["items"]] == [f"{three}-c"]
    assert "continue" not in second["metadata"]


def test_a_limit_is_a_number(api: Api) -> None:
    answer = api.ask("GET", NODES, limit="many")
    assert answer.refusal == (400, "BadRequest", 'strconv.ParseInt: parsing "many": invalid syntax')


def test_a_version_of_the_future_times_out(api: Api) -> None:
    code, reason, message = api.ask("GET", NODES, resourceVersion="999999999").refusal
    assert (code, reason) == (504, "Timeout")
    assert message.startswith("Timeout: Too large resource version: 999999999, current: ")
