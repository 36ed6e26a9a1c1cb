import pytest

from agent.controllers.notify import NodeSummary, Notifier
from tests.fakes import FakeServiceManager, running

pytestmark = pytest.mark.anyio

READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "message": "kubelet is posting ready status"}]}}
GOING = {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "node is shutting down"}]}}


@pytest.fixture
def manager():
    return FakeServiceManager()


@pytest.fixture
def loop(manager, clock, process):
    return Notifier(node_name="n1", manager=manager, clock=clock, isolation=process.unexpected.isolation("notify"))


async def test_ready_comes_with_the_first_heartbeat_and_until_then_time_is_asked_for(loop, manager, clock):
    summary = [NodeSummary()]
    loop.follow(lambda: summary[0])
    async with running(loop):
        await clock.advance(99)
        assert "READY=1" not in manager.words()
        assert manager.words().count("EXTEND_TIMEOUT_USEC=60000000") == 20
        summary[0] = NodeSummary(node=READY, lease_age_seconds=0.0)
        await clock.advance(0.2)
    assert manager.told[-1] == ("READY=1", "STATUS=n1: Ready, lease renewed 0s ago")


async def test_the_watchdog_is_fed_twice_in_its_time_while_no_loop_is_stuck(loop, manager, clock):
    stalls = {}
    loop.follow(lambda: NodeSummary(node=READY, lease_age_seconds=1.0, stalls=stalls))
    async with running(loop):
        await clock.advance(12)
        assert manager.words().count("WATCHDOG=1") == 3
        stalls["status"] = "nothing heard for 41s"
        await clock.advance(60)
    assert manager.words().count("WATCHDOG=1") == 3


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        pytest.param(None, "n1: waiting to be let into the cluster", id="no certificate yet"),
        pytest.param(NodeSummary(), "n1: waiting for the API server", id="no node yet"),
        pytest.param(NodeSummary(node=READY), "n1: Ready, no lease yet", id="no lease yet"),
        pytest.param(
            NodeSummary(node=GOING, lease_age_seconds=61.2),
            "n1: NotReady (node is shutting down), lease renewed 1m1s ago",
            id="going down",
        ),
    ],
)
def test_the_status_line_tells_of_node_and_lease(loop, manager, summary, line):
    loop.follow(lambda: summary)
    loop.sync()
    assert f"STATUS={line}" in manager.words()


def test_a_status_line_is_told_once(loop, manager):
    loop.sync()
    loop.sync()
    assert len([word for word in manager.words() if word.startswith("STATUS=")]) == 1


def test_a_reload_is_announced_with_its_time_and_its_end(loop, manager, clock):
    loop.follow(lambda: NodeSummary(node=READY, lease_age_seconds=0.0))
    loop.sync()
    clock.elapsed = 7.5
    manager.told.clear()
    with loop.reloading():
        assert manager.told == [("RELOADING=1", "MONOTONIC_USEC=7500000")]
    assert manager.told[-1] == ("READY=1",)


def test_a_reload_before_the_first_heartbeat_does_not_make_it_ready(loop, manager):
    with loop.reloading():
        pass
    assert manager.told == []


async def test_what_others_wrote_into_the_node_is_no_assignment_of_its_own(loop, manager, clock):
    message = "one\nWATCHDOG=trigger\nMAINPID=1\x1b\udc80" + "a" * 10_000
    node = {"status": {"conditions": [{"type": "Ready", "status": "False", "message": message}]}}
    loop.follow(lambda: NodeSummary(node=node, lease_age_seconds=1.0))
    async with running(loop):
        await clock.advance(1)
    (status,) = (word for word in manager.words() if word.startswith("STATUS="))
    assert status.isprintable()
    assert len(status) < 1000


async def test_words_that_cannot_be_found_do_not_keep_the_watchdog_hungry(loop, manager, clock):
    node = {"status": {"conditions": [{"type": "Ready"}]}}  # what no door would let in
    loop.follow(lambda: NodeSummary(node=node, lease_age_seconds=1.0))
    async with running(loop):
        await clock.advance(12)
    assert manager.words().count("WATCHDOG=1") == 3
