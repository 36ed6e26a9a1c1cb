"""Watches: the present, the changes, and where a watch can begin again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster.api import EVENTS, LEASES, MERGE_PATCH, NODES, Api


def lease(name: str, holder: str = "a", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"holderIdentity": holder}}


def told(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["spec"].get("holderIdentity", "")


def test_a_watch_begins_with_the_present(api: Api, name: str) -> None:
    api.create(LEASES, lease(name))
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}") as watch:
        event = watch.next()
    assert told(event) == ("ADDED", "a")
    assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")


def test_a_watch_tells_every_change_in_order(api: Api, name: str) -> None:
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}") as watch:
        made = api.create(LEASES, lease(name))
        api.ask("PATCH", f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, content_type=MERGE_PATCH)
        api.ask("DELETE", f"{LEASES}/{name}")
        events = [watch.next() for _ in range(3)]
    assert [told(one) for one in events] == [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]
    versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in events]
    assert versions == sorted(set(versions))
    assert versions[0] == int(made["metadata"]["resourceVersion"])


def test_a_watch_resumes_after_a_version(api: Api, name: str) -> None:
    made = api.create(LEASES, lease(name))
    api.ask("PATCH", f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, content_type=MERGE_PATCH)
    version = made["metadata"]["resourceVersion"]
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}", resourceVersion=version) as watch:
        assert told(watch.next()) == ("MODIFIED", "b")


def test_a_watch_follows_a_list_without_a_gap(api: Api, name: str) -> None:
    api.create(LEASES, lease(name, test=name))
    listed = api.ask("GET", LEASES, labelSelector=f"test={name}").json()["metadata"]["resourceVersion"]
    api.create(LEASES, lease(f"{name}-2", "b", test=name))
    with api.watch(LEASES, labelSelector=f"test={name}", resourceVersion=listed) as watch:
        assert told(watch.next()) == ("ADDED", "b")


def test_a_write_that_changes_nothing_is_no_event(api: Api, name: str) -> None:
    made = api.create(LEASES, lease(name))
    version = made["metadata"]["resourceVersion"]
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}", resourceVersion=version) as watch:
        api.ask("PUT", f"{LEASES}/{name}", made)
        api.ask("PATCH", f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, content_type=MERGE_PATCH)
        assert told(watch.next()) == ("MODIFIED", "b")


def test_an_object_enters_and_leaves_a_selection(api: Api, name: str) -> None:
    api.create(LEASES, lease(name, "outside"))
    with api.watch(LEASES, labelSelector=f"test={name}") as watch:
        for holder, label in (("enters", name), ("stays", name), ("leaves", None)):
            patch = {"metadata": {"labels": {"test": label}}, "spec": {"holderIdentity": holder}}
            api.ask("PATCH", f"{LEASES}/{name}", patch, content_type=MERGE_PATCH)
        events = [watch.next() for _ in range(3)]
    assert [told(one) for one in events] == [("ADDED", "enters"), ("MODIFIED", "stays"), ("DELETED", "stays")]
    left = api.get(f"{LEASES}/{name}")
    assert events[2]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_a_watch_sees_its_namespace_only(api: Api, name: str) -> None:
    elsewhere = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    with api.watch(LEASES, labelSelector=f"test={name}") as watch:
        api.create(elsewhere, lease(name, "elsewhere", test=name))
        api.create(LEASES, lease(name, "here", test=name))
        assert told(watch.next()) == ("ADDED", "here")


def test_a_watch_list_ends_its_beginning_with_a_bookmark(api: Api, name: str) -> None:
    api.create(LEASES, lease(name))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}", **query) as watch:
        assert told(watch.next()) == ("ADDED", "a")
        bookmark = watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "Lease"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0
        api.ask("PATCH", f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, content_type=MERGE_PATCH)
        assert told(watch.next()) == ("MODIFIED", "b")


def test_a_bookmark_of_nodes_has_the_shape_of_a_node(api: Api, name: str) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch(NODES, fieldSelector=f"metadata.name={name}", **query) as watch:
        bookmark = watch.next()["object"]
    empty = api.create(NODES, {"metadata": {"name": name}})["status"]
    assert (bookmark["spec"], bookmark["status"]) == ({}, empty)


def test_a_watch_list_must_say_how_old_it_may_be(api: Api) -> None:
    answer = api.ask("GET", NODES, watch="true", sendInitialEvents="true", allowWatchBookmarks="true")
    rule = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    assert answer.refusal == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {rule}')


@pytest.mark.slow
def test_a_watch_ends_at_its_deadline_after_a_bookmark(api: Api, name: str) -> None:
    query = {"timeoutSeconds": "4", "allowWatchBookmarks": "true", "resourceVersion": "0"}
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}", **query) as watch:
        events = list(watch)
    assert {one["type"] for one in events} == {"BOOKMARK"}
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > 0


@pytest.mark.slow
def test_bookmarks_come_only_if_asked_for(api: Api, name: str) -> None:
    with api.watch(LEASES, fieldSelector=f"metadata.name={name}", timeoutSeconds="3") as watch:
        assert list(watch) == []


def test_a_forgotten_version_is_gone(api: Api, name: str, forget_history: Callable[[], None]) -> None:
    # Events: the one resource that a real API server watches in etcd, where history can be cut.
    api.create(EVENTS, {"metadata": {"name": name}, "involvedObject": {"kind": "Node", "name": name}})
    forget_history()
    with api.watch(EVENTS, resourceVersion="1") as watch:
        event = watch.next()
        assert watch.status == 200
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["status"], status["code"], status["reason"]) == ("Status", "Failure", 410, "Expired")


def test_a_version_is_a_number(api: Api) -> None:
    code, _, message = api.ask("GET", NODES, watch="true", resourceVersion="abc").refusal
    assert code == 500
    assert message == 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
