from dataclasses import replace

import pytest

from agent.controllers.registration import NodeRegistrar
from agent.controllers.status import StatusController
from agent.core.nodestatus import find_condition
from agent.core.pressure import parse_thresholds
from agent.machinery.reflector import Reflector
from agent.machinery.runner import Runner, Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.ports import Unavailable
from tests.fakes import FakeRecorder, host_snapshot, new_state, running
from tests.settings import Eviction, NodeConfig, Registration

pytestmark = pytest.mark.anyio

PROBLEM = ("storage", "CSINode is not yet initialized")


@pytest.fixture
def events():
    return FakeRecorder()


@pytest.fixture
def make(nodes, clock, events, process, loop_health):
    def build(rand=lambda: 0.0, **settings):
        dependencies, queue = replace(process.dependencies, rand=rand), WorkQueue(clock)
        scheduling = Scheduling(loop="status", queue=queue, dependencies=dependencies, health=loop_health)
        config = NodeConfig(node_name="n1", **settings)
        build.state = state = new_state(process, config)
        registration = NodeRegistrar(state, nodes, events, scheduling)
        StatusController(
            state,
            nodes=nodes,
            registration=registration,
            events=events,
            scheduling=scheduling,
            on_deleted=lambda name: None,
        ).start()
        return (
            Reflector("*v1.Node", nodes, state, dependencies=dependencies, health=loop_health),
            Runner("node", queue),
        )

    return build


async def test_an_unchanged_status_is_computed_every_10_seconds_and_sent_every_5_minutes(make, clock, nodes, host):
    async with running(*make(rand=lambda: 0.5)):  # a spread of exactly nothing, and 2 % of jitter
        host.read_at.clear()
        await clock.advance(700)
    assert host.read_at[:3] == pytest.approx([10.2, 20.4, 30.6])
    assert nodes.times("patch_status") == pytest.approx([0, 306, 612])


async def test_a_change_is_sent_at_the_next_tick(make, clock, nodes, host):
    async with running(*make()):
        await clock.advance(15)
        host.current = host_snapshot(kernel_version="6.2.0")
        await clock.advance(5)
    assert nodes.times("patch_status") == [0, 20]
    assert nodes.objects["n1"]["status"]["nodeInfo"]["kernelVersion"] == "6.2.0"


async def test_a_new_node_is_reported_when_it_is_ready(make, clock, nodes, events):
    loops = make()
    make.state.block(*PROBLEM)
    async with running(*loops):
        await clock.advance(1)
        make.state.clear("storage")
        await clock.advance(0)
    assert nodes.times("patch_status") == [1]
    assert events.reasons[-1] == "NodeReady"


async def test_becoming_ready_does_not_wait_for_a_tick(make, clock, nodes, events):
    loops = make()
    make.state.block(*PROBLEM)
    async with running(*loops):
        await clock.advance(4)
        assert find_condition(nodes.objects["n1"]["status"], "Ready")["message"] == "CSINode is not yet initialized"
        make.state.clear("storage")
        await clock.advance(0)
        assert find_condition(nodes.objects["n1"]["status"], "Ready")["status"] == "True"
    assert nodes.times("patch_status") == [3, 4]
    assert events.reasons[-1] == "NodeReady"


async def test_pressure_is_told_with_an_event_and_ends_after_the_transition_period(make, clock, nodes, host, events):
    loops = make(eviction=Eviction(hard=parse_thresholds({"memory.available": "100Mi"}), transition_seconds=60))
    async with running(*loops):
        host.current = host_snapshot(memory_available_bytes=0)
        await clock.advance(10)
        assert find_condition(nodes.objects["n1"]["status"], "MemoryPressure")["status"] == "True"
        host.current = host_snapshot()
        await clock.advance(50)
        assert find_condition(nodes.objects["n1"]["status"], "MemoryPressure")["status"] == "True"
        await clock.advance(20)
        assert find_condition(nodes.objects["n1"]["status"], "MemoryPressure")["status"] == "False"
    assert events.reasons[-2:] == ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"]


async def test_an_update_is_tried_five_times_at_once_and_then_left_to_the_next_tick(make, clock, nodes, host, caplog):
    async with running(*make()):
        nodes.fail = lambda _: Unavailable("away")
        await clock.advance(10)
        assert nodes.times("get") == []  # nothing to tell: a kubelet asks nobody then either
        host.current = host_snapshot(kernel_version="6.2.0")
        await clock.advance(10)
        assert nodes.times("patch_status") == [0, 20]
        assert nodes.times("get") == [20] * 4
        nodes.fail = lambda _: None
        await clock.advance(10)
    assert nodes.times("patch_status") == [0, 20, 30]
    assert [r.msg for r in caplog.records].count("Error updating node status, will retry") == 5
    assert [r.msg for r in caplog.records].count("Unable to update node status") == 1


async def test_without_register_node_nothing_is_created_and_a_node_made_by_hand_is_kept_up(make, clock, nodes):
    async with running(*make(registration=Registration(register_node=False))):
        await clock.advance(10)
        assert nodes.times("create") == []
        await nodes.create({"metadata": {"name": "n1"}})
        await clock.advance(10)
    assert nodes.objects["n1"]["status"]["capacity"]["cpu"] == "4"
    assert nodes.objects["n1"]["metadata"]["labels"] == {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


async def test_the_first_sight_of_a_pod_cidr_counts_as_a_change(make, clock, nodes):
    async with running(*make()):
        await nodes.patch("n1", {"spec": {"podCIDRs": ["10.244.0.0/24"]}})
        await clock.advance(20)
    assert nodes.times("patch_status") == [0, 10]


async def test_an_address_that_is_not_ours_is_said_and_the_rest_is_reported(make, clock, nodes, host, caplog):
    host.current = host_snapshot(network=host.current.network.__class__())
    async with running(*make()):
        pass
    assert "addresses" not in nodes.objects["n1"]["status"]
    assert nodes.objects["n1"]["status"]["capacity"]["cpu"] == "4"
    assert "Failed to set some node status fields" in [r.msg for r in caplog.records]


@pytest.mark.parametrize("register_node", [True, False], ids=["registered", "not registered"])
async def test_a_reboot_and_old_cgroups_are_told_once(make, clock, nodes, host, events, register_node):
    await nodes.create({"metadata": {"name": "n1"}, "status": {"nodeInfo": {"bootID": "another"}}})
    host.current = host_snapshot(cgroup_version=1)
    async with running(*make(registration=Registration(register_node=register_node))):
        await nodes.patch_status("n1", {"status": {"nodeInfo": {"bootID": "a third"}}})
        await clock.advance(30)
    assert [events.reasons.count(reason) for reason in ("CgroupV1", "Rebooted")] == [1, 1]


async def restarted(make, nodes, clock):
    async with running(*make()):
        await clock.advance(1)
    assert find_condition(nodes.objects["n1"]["status"], "Ready")["status"] == "True"
    return make()


async def test_a_ready_node_stays_ready_over_a_restart_while_its_csinode_is_looked_for(make, nodes, clock):
    loops = await restarted(make, nodes, clock)
    make.state.block(*PROBLEM)
    nodes.calls.clear()
    async with running(*loops):
        await clock.advance(2)
        make.state.block("network", "no route")  # wakes the controller for another reason
        make.state.clear("network")
        await clock.advance(0.5)
        assert nodes.times("patch_status") == []
        make.state.clear("storage")
        await clock.advance(30)
    assert find_condition(nodes.objects["n1"]["status"], "Ready")["status"] == "True"


async def test_what_keeps_a_ready_node_from_being_ready_after_a_restart_is_told_in_the_end(make, nodes, clock, caplog):
    caplog.set_level("INFO")
    loops = await restarted(make, nodes, clock)
    make.state.block(*PROBLEM)
    async with running(*loops):
        await clock.advance(4)
    assert find_condition(nodes.objects["n1"]["status"], "Ready")["status"] == "False"
    (told,) = [record.args for record in caplog.records if record.msg == "Node became not ready"]
    assert "CSINode is not yet initialized" in told["condition"]["message"]
