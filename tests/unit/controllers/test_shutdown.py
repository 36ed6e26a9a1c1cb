import asyncio

import pytest

from agent.controllers.shutdown import GracefulShutdown, ShutdownManager, kill_pods_by_priority
from agent.core.pods.termination import KillRequest
from agent.core.shutdown import GracePeriod, grace_periods
from agent.ports import Unavailable
from tests.fakes import FakeLogind, FakeRecorder, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def logind():
    return FakeLogind()


@pytest.fixture
def node(make_node):
    return make_node()


@pytest.fixture
def loop(node, logind, clock):
    return ShutdownManager(periods=grace_periods(30, 10), logind=logind, shutdown=node.node.shutdown, clock=clock)


@pytest.fixture
def ready(nodes):
    """The Ready condition as the API server has it."""

    def find():
        conditions = nodes.objects["n1"]["status"]["conditions"]
        found = next(condition for condition in conditions if condition["type"] == "Ready")
        return found["status"], found["reason"], found["message"]

    return find


def events(clients):
    return [event["message"] for event in clients.events.objects.values() if event["reason"] == "Shutdown"]


async def test_a_shutdown_waits_until_the_cluster_knows_of_it(loop, node, logind, clock, ready, clients):
    async with running(*node.tasks, loop):
        await clock.advance(1)
        assert (logind.locks, logind.delay) == (1, 30)
        await logind.say(True)
        assert ready() == ("False", "KubeletNotReady", "node is shutting down")
        assert logind.locks == 0
        assert events(clients) == ["Shutdown manager detected shutdown event"]


async def test_metrics_tell_when_a_shutdown_began_and_ended(loop, node, logind, clock):
    async with running(*node.tasks, loop):
        await clock.advance(30)
        asked_at = clock.now().timestamp()
        await logind.say(True)
        await clock.advance(5)
    told = {
        family.name: family.samples[0].value
        for family in node.process.metrics.families()
        if "graceful_shutdown" in family.name
    }
    assert told["kubelet_graceful_shutdown_start_time_seconds"] == asked_at
    assert asked_at <= told["kubelet_graceful_shutdown_end_time_seconds"] <= asked_at + 3


async def test_one_that_is_called_off_leaves_a_ready_node_and_a_new_lock(loop, node, logind, clock, ready, clients):
    async with running(*node.tasks, loop):
        await clock.advance(1)
        await logind.say(True)
        await logind.say(False)
        assert ready()[0] == "True"
        assert logind.locks == 1
        assert events(clients)[-1] == "Shutdown manager detected shutdown cancellation"


async def test_an_api_server_that_does_not_answer_does_not_keep_the_machine_up(loop, node, logind, clock, nodes):
    async with running(*node.tasks, loop):
        await clock.advance(1)
        nodes.fail = lambda verb: Unavailable("timeout")
        await logind.say(True)
        assert logind.locks == 1
        await clock.advance(3)
        assert logind.locks == 0


async def test_where_the_lock_is_refused_the_cluster_is_told_all_the_same(loop, node, logind, clock, ready, caplog):
    logind.allows_lock = False
    async with running(*node.tasks, loop):
        await clock.advance(1)
        await logind.say(True)
        assert ready()[0] == "False"
    assert "Unable to hold a shutdown of the machine back" in [record.msg for record in caplog.records]


async def test_a_delay_that_cannot_be_raised_is_said_and_lived_with(loop, logind, clock, caplog):
    logind.allows_delay = False
    async with running(loop):
        await clock.advance(1)
        assert logind.locks == 1
    assert "waits for less time than the settings say" in caplog.text


@pytest.mark.parametrize(("looks", "has_time"), [(4, True), (5, False)])
async def test_logind_may_take_a_moment_to_read_its_settings(loop, logind, clock, caplog, looks, has_time):
    logind.late_looks = looks
    async with running(loop):
        await clock.advance(1.5)  # 0.1, 0.2, 0.4 and 0.8 s, and no pause after the last look
        assert logind.locks == 1
    assert ("waits for less time than the settings say" not in caplog.text) == has_time


async def test_pods_end_while_the_cluster_is_told_and_even_if_it_does_not_listen(state, clock, dependencies):
    ended_at = []

    async def end_pods():
        await clock.sleep(10)
        ended_at.append(clock.elapsed)

    shutdown = GracefulShutdown(
        state=state,
        events=FakeRecorder(),
        clock=clock,
        end_pods=end_pods,
        isolation=dependencies.unexpected.isolation("shutdown"),
        metrics=dependencies.metrics,
    )
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(shutdown.begin())
        await clock.advance(10)
        assert (leaving.done(), ended_at) == (True, [10.0])


async def test_a_bus_that_comes_back_is_listened_to_again(loop, node, logind, clock, ready):
    async with running(*node.tasks, loop):
        await clock.advance(1)
        await logind.say(None)
        assert logind.locks == 0
        await clock.advance(1)
        assert (logind.locks, logind.sessions) == (1, 2)
        await logind.say(True)
        assert ready()[0] == "False"


async def test_without_logind_the_end_of_the_process_is_that_of_the_node(loop, node, logind, clock, ready):
    logind.is_there = False
    async with running(*node.tasks, loop):
        await clock.advance(1)
        await loop.process_ends()
        assert ready() == ("False", "KubeletNotReady", "node is shutting down")


async def test_with_logind_the_end_of_the_process_is_not_that_of_the_node(loop, node, clock, ready):
    async with running(*node.tasks, loop):
        await clock.advance(1)
        await loop.process_ends()
        assert ready()[0] == "True"


async def test_a_node_that_goes_down_waits_for_pods_that_are_ending_already(controller, workers, pods, clock):
    for name in ("doomed", "evicted", "gone"):
        slow = {"annotations": {"fake-kubelet.dev/stop-after": "8s"}, "generation": 1}
        pods.add(name, metadata={"name": name, "namespace": "ns", "uid": f"uid-{name}"} | slow)
    async with running(workers):
        await clock.advance(1)
        pods.terminate("doomed", when="2026-01-02T03:04:36Z")  # told to end now, with 30 s of grace
        controller.kill("uid-evicted", KillRequest("Evicted", "short of memory", 30.0, clock.now()))
        pods.drop("gone")
        await clock.advance(2)
        ending = asyncio.create_task(kill_pods_by_priority(controller, periods=(GracePeriod(0, 20),), clock=clock))
        await clock.advance(5)
        assert not ending.done()
        await clock.advance(2)
        assert ending.done()
    assert pods.deleted == [("ns", "doomed", "uid-doomed")]
    assert pods.objects["evicted"]["status"]["reason"] == "Evicted"


async def test_a_node_that_goes_down_ends_its_pods_in_the_order_of_their_priority(
    controller, workers, pods, told, clock
):
    slow = {"fake-kubelet.dev/stop-after": "1h"}
    for name, priority in (("common", 0), ("critical", 2_000_000_000)):
        spec = {"priority": priority, "containers": [{"name": "main", "image": "x:1"}]}
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": 1, "annotations": slow}
        pods.add(name, spec=spec, metadata=metadata)
    periods = (GracePeriod(0, 20), GracePeriod(2_000_000_000, 10))
    async with running(workers):
        ending = asyncio.create_task(kill_pods_by_priority(controller, periods=periods, clock=clock))
        await clock.advance(19)
        assert pods.phase("common") == "Running"
        await clock.advance(2)
        assert (pods.phase("common"), pods.phase("critical")) == ("Failed", "Running")
        await clock.advance(11)
        assert ending.done()
    assert pods.objects["critical"]["status"]["reason"] == "Terminated"
    assert [reason for name, reason in told.events if name == "critical"][-1] == "Killing"
