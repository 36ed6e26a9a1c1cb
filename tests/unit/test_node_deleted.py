"""A Node that somebody deletes while we run, seen on the whole node."""

import asyncio

import pytest

from agent.core.nodestatus import is_ready
from agent.ports import Forbidden, NodeDeleted, Unavailable
from tests.fakes import running, settle
from tests.settings import Registration

pytestmark = pytest.mark.anyio


def owner(objects):
    return objects.objects["n1"]["metadata"]["ownerReferences"][0]["uid"]


def uid(nodes):
    return nodes.objects["n1"]["metadata"]["uid"]


def policy(word):
    return {"registration": Registration(on_node_deleted=word)}


async def test_it_is_registered_again_within_a_second_and_lease_and_csinode_belong_to_the_new_one(
    make_node, clock, nodes, leases, csinodes
):
    async with running(*make_node().tasks):
        await clock.advance(25)
        before = uid(nodes)
        await nodes.delete("n1")
        await clock.advance(1)
        assert uid(nodes) != before
        assert owner(leases) == owner(csinodes) == uid(nodes)
        assert is_ready(nodes.objects["n1"]["status"])


async def test_a_lease_that_was_collected_with_its_node_is_made_again_for_the_new_one(make_node, clock, nodes, leases):
    async with running(*make_node().tasks):
        await clock.advance(25)
        leases.clear()
        await nodes.delete("n1")
        await clock.advance(1)
        assert owner(leases) == uid(nodes)


async def test_while_there_is_no_node_no_lease_is_written(make_node, clock, nodes, leases):
    async with running(*make_node().tasks):
        await clock.advance(25)
        nodes.fail = lambda verb: Unavailable("away") if verb == "create" else None
        await nodes.delete("n1")
        await clock.advance(0)
        written = len(leases.calls)
        await clock.advance(60)
        assert len(leases.calls) == written
        nodes.fail = lambda _: None
        await clock.advance(7)
        assert owner(leases) == uid(nodes)


async def test_one_that_somebody_else_made_is_taken_over(make_node, clock, nodes, leases, csinodes):
    async with running(*make_node().tasks):
        await clock.advance(25)
        await nodes.delete("n1")
        leases.clear()  # collected
        csinodes.clear()
        await nodes.create({"metadata": {"name": "n1", "labels": {"mine": "1"}}})
        for kind in (nodes, leases, csinodes):
            kind.calls.clear()
        await clock.advance(1)
        assert [verb for _, verb in nodes.calls] == ["patch_status", "patch_status"]
        assert [verb for _, verb in leases.calls] == ["create"]
        assert [verb for _, verb in csinodes.calls] == ["get", "create"]
        node = nodes.objects["n1"]
        assert node["metadata"]["labels"]["mine"] == "1"
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
        assert owner(leases) == owner(csinodes) == uid(nodes)


async def test_one_that_was_replaced_while_the_watch_was_down_is_noticed(make_node, clock, nodes, leases):
    async with running(*make_node().tasks):
        await clock.advance(25)
        nodes.fail = lambda verb: Unavailable("away") if verb in {"list", "watch"} else None
        nodes.cut()
        await nodes.delete("n1")
        await nodes.create({"metadata": {"name": "n1"}})
        leases.clear()  # collected
        await clock.advance(11)
        assert owner(leases) == uid(nodes)


async def test_a_kubelet_stays_idle_and_takes_up_a_node_that_others_make(make_node, clock, nodes, leases):
    async with running(*make_node(**policy("idle")).tasks):
        await clock.advance(25)
        await nodes.delete("n1")
        leases.clear()
        nodes.calls.clear()
        await clock.advance(40)
        assert nodes.times("create") == []
        assert leases.objects == {}
        # at once, and then at each tick: one look at the copy and four requests, as kubelet
        assert len(nodes.times("get")) == 5 * 4
        await nodes.create({"metadata": {"name": "n1"}})
        await clock.advance(1)
        assert owner(leases) == uid(nodes)
        await clock.advance(10)
        assert is_ready(nodes.objects["n1"]["status"])


async def test_exit_means_exit(make_node, clock, nodes):
    async def deleted():
        async with running(*make_node(**policy("exit")).tasks):
            await clock.advance(25)
            await nodes.delete("n1")
            await clock.advance(0)

    with pytest.RaisesGroup(NodeDeleted):
        await deleted()


async def test_a_node_that_is_not_there_yet_is_not_a_deleted_one(make_node, clock, nodes):
    async with running(*make_node(registration=Registration(register_node=False, on_node_deleted="exit")).tasks):
        await clock.advance(60)
    assert nodes.objects == {}


async def test_without_register_node_nothing_is_registered_again(make_node, clock, nodes):
    async with running(*make_node(registration=Registration(register_node=False)).tasks):
        await nodes.create({"metadata": {"name": "n1"}})
        await clock.advance(20)
        await nodes.delete("n1")
        await clock.advance(60)
    assert nodes.times("create") == [0]


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "forbidden"])
async def test_deregistering_removes_what_may_be_removed_and_says_what_may_not(
    make_node, clock, nodes, leases, caplog, allowed
):
    caplog.set_level("INFO")
    node = make_node(registration=Registration(deregister=True))
    async with running(*node.process.lasting_tasks):
        async with running(*node.process.tasks):
            await clock.advance(1)
        nodes.fail = lambda verb: None if allowed else Forbidden('nodes "n1" is forbidden')
        await node.process.drain()
    assert ("n1" in nodes.objects) is not allowed
    assert leases.objects == {}
    told = [record.msg for record in caplog.records]
    assert ("Unable to deregister" in told) is not allowed


async def test_deregistering_does_not_wait_for_events_that_nobody_takes(make_node, clock, nodes, leases):
    node = make_node(registration=Registration(deregister=True))
    lease, _ = node.process.lasting_tasks
    async with running(*node.process.tasks, lease):  # and nothing that sends events
        await clock.advance(1)
    drained = asyncio.ensure_future(node.process.drain())
    await settle()
    assert (nodes.objects, leases.objects) == ({}, {})
    assert not drained.done()
    drained.cancel()


async def test_by_default_node_and_lease_stay(make_node, clock, nodes, leases):
    node = make_node()
    async with running(*node.process.lasting_tasks):
        async with running(*node.process.tasks):
            await clock.advance(1)
        await node.process.drain()
    assert "n1" in nodes.objects
    assert "n1" in leases.objects
