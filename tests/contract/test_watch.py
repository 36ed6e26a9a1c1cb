"""Watches: the present, the changes, and where a watch can begin again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.contract.client import EVENTS, LEASES, MERGE_PATCH, NODES, Api

pytestmark = pytest.mark.anyio


def lease(name: str, holder: str = "a", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"holderIdentity": holder}}


def told(event: dict[str, Any]) -> tuple[str, str]:
    return event["type"], event["object"]["spec"].get("holderIdentity", "")


async def test_a_watch_begins_with_the_present(api: Api, name: str) -> None:
    await api.create(LEASES, lease(name))
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}") as watch:
        event = await watch.next()
    assert told(event) == ("ADDED", "a")
    assert (event["object"]["kind"], event["object"]["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")


async def test_a_watch_tells_every_change_in_order(api: Api, name: str) -> None:
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}") as watch:
        made = await api.create(LEASES, lease(name))
        await api.patch(f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, MERGE_PATCH)
        await api.delete(f"{LEASES}/{name}")
        events = [await watch.next() for _ in range(3)]
    assert [told(one) for one in events] == [("ADDED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]
    versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in events]
    assert versions == sorted(set(versions))
    assert versions[0] == int(made["metadata"]["resourceVersion"])


async def test_a_watch_resumes_after_a_version(api: Api, name: str) -> None:
    made = await api.create(LEASES, lease(name))
    await api.patch(f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, MERGE_PATCH)
    version = made["metadata"]["resourceVersion"]
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}", resourceVersion=version) as watch:
        assert told(await watch.next()) == ("MODIFIED", "b")


async def test_a_watch_follows_a_list_without_a_gap(api: Api, name: str) -> None:
    await api.create(LEASES, lease(name, test=name))
    listed = (await api.get(LEASES, labelSelector=f"test={name}")).body["metadata"]["resourceVersion"]
    await api.create(LEASES, lease(f"{name}-2", "b", test=name))
    async with api.watch(LEASES, labelSelector=f"test={name}", resourceVersion=listed) as watch:
        assert told(await watch.next()) == ("ADDED", "b")


async def test_a_write_that_changes_nothing_is_no_event(api: Api, name: str) -> None:
    made = await api.create(LEASES, lease(name))
    version = made["metadata"]["resourceVersion"]
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}", resourceVersion=version) as watch:
        await api.put(f"{LEASES}/{name}", made)
        await api.patch(f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, MERGE_PATCH)
        assert told(await watch.next()) == ("MODIFIED", "b")


async def test_an_object_enters_and_leaves_a_selection(api: Api, name: str) -> None:
    await api.create(LEASES, lease(name, "outside"))
    async with api.watch(LEASES, labelSelector=f"test={name}") as watch:
        for holder, label in (("enters", name), ("stays", name), ("leaves", None)):
            patch = {"metadata": {"labels": {"test": label}}, "spec": {"holderIdentity": holder}}
            await api.patch(f"{LEASES}/{name}", patch, MERGE_PATCH)
        events = [await watch.next() for _ in range(3)]
    assert [told(one) for one in events] == [("ADDED", "enters"), ("MODIFIED", "stays"), ("DELETED", "stays")]
    left = await api.read(f"{LEASES}/{name}")
    assert events[2]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_a_watch_sees_its_namespace_only(api: Api, name: str) -> None:
    elsewhere = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    async with api.watch(LEASES, labelSelector=f"test={name}") as watch:
        await api.create(elsewhere, lease(name, "elsewhere", test=name))
        await api.create(LEASES, lease(name, "here", test=name))
        assert told(await watch.next()) == ("ADDED", "here")


async def test_a_watch_list_ends_its_beginning_with_a_bookmark(api: Api, name: str) -> None:
    await api.create(LEASES, lease(name))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}", **query) as watch:
        assert told(await watch.next()) == ("ADDED", "a")
        bookmark = await watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "Lease"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0
        await api.patch(f"{LEASES}/{name}", {"spec": {"holderIdentity": "b"}}, MERGE_PATCH)
        assert told(await watch.next()) == ("MODIFIED", "b")


async def test_a_bookmark_of_nodes_has_the_shape_of_a_node(api: Api, name: str) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(NODES, fieldSelector=f"metadata.name={name}", **query) as watch:
        bookmark = (await watch.next())["object"]
    empty = (await api.create(NODES, {"metadata": {"name": name}}))["status"]
    assert (bookmark["spec"], bookmark["status"]) == ({}, empty)


async def test_a_watch_list_must_say_how_old_it_may_be(api: Api) -> None:
    answer = await api.get(NODES, watch="true", sendInitialEvents="true", allowWatchBookmarks="true")
    rule = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    assert answer.refusal == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {rule}')


@pytest.mark.slow
async def test_a_watch_ends_at_its_deadline_after_a_bookmark(api: Api, name: str) -> None:
    query = {"timeoutSeconds": "4", "allowWatchBookmarks": "true", "resourceVersion": "0"}
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}", **query) as watch:
        events = await watch.rest()
    assert {one["type"] for one in events} == {"BOOKMARK"}
    assert int(events[0]["object"]["metadata"]["resourceVersion"]) > 0


@pytest.mark.slow
async def test_bookmarks_come_only_if_asked_for(api: Api, name: str) -> None:
    async with api.watch(LEASES, fieldSelector=f"metadata.name={name}", timeoutSeconds="3") as watch:
        assert await watch.rest() == []


async def test_a_forgotten_version_is_gone(api: Api, name: str, forget_history: Callable[[], Awaitable[None]]) -> None:
    # Events: the one resource that a real API server watches in etcd, where history can be cut.
    await api.create(EVENTS, {"metadata": {"name": name}, "involvedObject": {"kind": "Node", "name": name}})
    await forget_history()
    async with api.watch(EVENTS, resourceVersion="1") as watch:
        event = await watch.next()
        assert watch.status == 200
    assert event["type"] == "ERROR"
    status = event["object"]
    assert (status["kind"], status["status"], status["code"], status["reason"]) == ("Status", "Failure", 410, "Expired")


async def test_a_version_is_a_number(api: Api) -> None:
    code, _, message = (await api.get(NODES, watch="true", resourceVersion="abc")).refusal
    assert code == 500
    assert message == 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
