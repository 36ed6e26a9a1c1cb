"""The nodes of a fleet, by their plans."""

import pytest

from agent.core.fleet import StartupRule, plans, scaled
from agent.core.nodestatus import find_condition, is_ready
from agent.fleet.hosting import HostedFleet
from agent.fleet.starter import Starter
from agent.ports import Unavailable
from tests.fakes import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def living(process, starter):
    """Runs the process, and what starts its nodes."""
    return lambda: running(*process.tasks, *process.lasting_tasks, starter)


def add_all(hosted, fleet):
    for plan in plans(fleet):
        hosted.add(plan)


async def test_all_nodes_become_ready_with_the_label_of_the_fleet_and_machines_of_their_own(
    hosted, make_fleet, living, clock, nodes, leases, csinodes
):
    add_all(hosted, make_fleet(40))
    async with living():
        await clock.advance(10)
    assert hosted.states() == {"Ready": 40}
    objects = nodes.objects.values()
    assert all(is_ready(node["status"]) for node in objects)
    assert {node["metadata"]["labels"]["fake-kubelet.dev/fleet"] for node in objects} == {"test"}
    for identity in ("machineID", "systemUUID", "bootID"):
        assert len({node["status"]["nodeInfo"][identity] for node in objects}) == 40
    assert len({node["status"]["addresses"][0]["address"] for node in objects}) == 40
    assert nodes.objects.keys() == leases.objects.keys() == csinodes.objects.keys()


async def test_what_a_new_node_needs_is_created_without_looking_for_it_first(
    hosted, make_fleet, living, clock, nodes, leases, csinodes
):
    add_all(hosted, make_fleet(1))
    async with living():
        await clock.advance(5)
    assert leases.times("get") == csinodes.times("get") == nodes.times("get") == []


async def test_nodes_that_others_have_made_for_the_fleet_are_taken_as_the_watch_shows_them(
    hosted, make_fleet, living, clock, nodes, leases, csinodes
):
    for index in range(2):
        await nodes.create({"metadata": {"name": f"n{index}", "labels": {"fake-kubelet.dev/fleet": "test"}}})
    made = {node["metadata"]["uid"] for node in nodes.objects.values()}
    before = len(nodes.times("create"))
    add_all(hosted, make_fleet(2))
    async with living():
        await clock.advance(5)
    assert hosted.states() == {"Ready": 2}
    assert {node["metadata"]["uid"] for node in nodes.objects.values()} == made
    assert len(nodes.times("create")) == before
    assert len(nodes.times("patch_status")) == 2
    assert {node["metadata"]["labels"]["kubernetes.io/hostname"] for node in nodes.objects.values()} == {"n0", "n1"}
    assert leases.times("get") == csinodes.times("get") == nodes.times("get") == []


async def test_nodes_come_up_late_never_or_not_ready_as_planned(hosted, make_fleet, living, clock, nodes):
    rule = StartupRule(delay_seconds=45.0, never_register_percent=10.0, never_ready_percent=20.0)
    add_all(hosted, make_fleet(100, startup=rule))
    async with living():
        await clock.advance(44)
        assert hosted.states() == {"waiting": 100}
        assert not nodes.objects
        await clock.advance(30)
    assert hosted.states() == {"Ready": 70, "NotReady": 20, "waiting": 10}
    unready = [node for node in nodes.objects.values() if not is_ready(node["status"])]
    assert {"cni plugin not initialized" in find_condition(node["status"], "Ready")["message"] for node in unready} == {
        True
    }


async def test_another_count_adds_and_removes_nodes_and_leaves_the_others_alone(
    hosted, make_fleet, living, clock, nodes, process
):
    fleet = make_fleet(5)
    add_all(hosted, fleet)
    async with living():
        await clock.advance(10)
        uids = {name: node["metadata"]["uid"] for name, node in nodes.objects.items()}
        hosted.apply(plans(scaled(fleet, {"node": 8})))
        await clock.advance(10)
        assert hosted.states() == {"Ready": 8}
        changes = hosted.apply(plans(scaled(fleet, {"node": 3})))
        assert {plan.name for plan in changes.removed} == {"n3", "n4", "n5", "n6", "n7"}
        await clock.advance(60)
        assert process.nodes.keys() == {"n0", "n1", "n2"}
        assert hosted.states() == {"Ready": 3}
        assert {name: nodes.objects[name]["metadata"]["uid"] for name in process.nodes} == {
            name: uids[name] for name in process.nodes
        }


async def test_a_node_that_somebody_deletes_returns(hosted, make_fleet, living, clock, nodes):
    add_all(hosted, make_fleet(3))
    async with living():
        await clock.advance(10)
        await nodes.delete("n1")
        await clock.advance(10)
    assert hosted.states() == {"Ready": 3}


async def test_no_more_nodes_start_than_an_api_server_takes(hosted, make_fleet, living, clock, nodes, starter):
    add_all(hosted, make_fleet(200))
    nodes.fail = lambda _: Unavailable("too many requests")
    async with living():
        await clock.advance(5)
        assert starter.waiting == 200 - 64
        for _ in range(5):
            starter.observe(429, 0.01)
            await clock.advance(1)
        assert starter.limit.limit == 4
        nodes.fail = lambda _: None
        await clock.advance(60)
    assert hosted.states() == {"Ready": 200}


async def test_no_node_starts_while_leases_wait_to_be_renewed(process, clients, make_fleet, clock, nodes):
    is_behind = True
    starter = Starter(clock, lambda: is_behind)
    hosted = HostedFleet(process, clients, starter)
    process.reflect(nodes)
    add_all(hosted, make_fleet(3))
    async with running(*process.tasks, *process.lasting_tasks, starter):
        await clock.advance(5)
        assert hosted.states() == {"waiting": 3}
        is_behind = False
        await clock.advance(5)
        assert hosted.states() == {"Ready": 3}


async def test_answers_that_take_long_slow_the_start_down(hosted, make_fleet, living, clock, starter):
    add_all(hosted, make_fleet(3))
    async with living():
        await clock.advance(0)
        starter.observe(200, 5.5)
    assert starter.limit.decreases == 1


async def test_answers_after_the_start_are_none_of_its_business(hosted, make_fleet, living, clock, starter):
    add_all(hosted, make_fleet(3))
    async with living():
        await clock.advance(10)
        starter.observe(503, 1.5)
    assert starter.limit.decreases == 0
