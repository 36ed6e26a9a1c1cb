import asyncio
from dataclasses import replace

import pytest

from agent.core.events import STARTING, NodeEvent
from agent.core.schedule import TokenBucket
from agent.machinery.recorder import EventRecorder
from agent.machinery.runner import Runner
from agent.ports import Forbidden, Unavailable
from tests.fakes import FakeEvents, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def sent(clock):
    return FakeEvents(clock)


@pytest.fixture
def make(sent, scheduling):
    def build(pace, **more):
        return EventRecorder(
            "n1",
            sent,
            pace=pace,
            scheduling=replace(scheduling, dependencies=replace(scheduling.dependencies, rand=lambda: 0.5)),
            **more,
        )

    return build


@pytest.fixture
def recorder(make):
    return make(TokenBucket(2, 5))


@pytest.fixture
def loop(queue):
    return Runner("events", queue)


@pytest.fixture
def outcomes(process):
    """How many events were sent or dropped."""

    def count():
        (family,) = (found for found in process.metrics.families() if found.name == "fake_kubelet_events_total")
        return {sample.labels["outcome"]: sample.value for sample in family.samples}

    return count


def reasons(sent):
    return [event["reason"] for event in sent.objects.values()]


async def test_events_are_sent_in_the_order_they_were_recorded(recorder, loop, sent):
    recorder.record(STARTING)
    recorder.record(NodeEvent("NodeReady", "ready"))
    async with running(loop):
        assert reasons(sent) == ["Starting", "NodeReady"]


async def test_an_event_waits_for_a_server_that_is_away(recorder, loop, sent, clock):
    sent.fail = lambda _: Unavailable("away")
    recorder.record(STARTING)
    async with running(loop):
        await clock.advance(14)
        assert sent.times("create") == [0, 5]
        sent.fail = lambda _: None
        await clock.advance(1)
    assert reasons(sent) == ["Starting"]


async def test_an_event_is_given_up_after_twelve_tries_and_the_next_one_goes_on(recorder, loop, sent, clock):
    sent.fail = lambda _: Unavailable("away")
    recorder.record(STARTING)
    async with running(loop):
        await clock.advance(600)
        assert len(sent.times("create")) == 12
        sent.fail = lambda _: None
        recorder.record(NodeEvent("NodeReady", "ready"))
        await clock.advance(0)
    assert reasons(sent) == ["NodeReady"]


async def test_an_event_that_the_server_refuses_is_dropped_at_once(recorder, loop, sent):
    sent.fail = lambda _: Forbidden("no")
    recorder.record(STARTING)
    async with running(loop):
        assert sent.times("create") == [0]


async def test_the_same_again_is_counted_on_the_first_and_made_anew_once_that_expired(recorder, loop, sent, clock):
    async with running(loop):
        for _ in range(2):
            recorder.record(STARTING)
        await clock.advance(0)
        (event,) = sent.objects.values()
        assert event["count"] == 2
        sent.clear()
        recorder.record(STARTING)
        await clock.advance(0)
        (event,) = sent.objects.values()
        assert event["count"] == 3


def test_a_full_queue_drops_the_event_says_so_once_and_never_waits(recorder, outcomes, caplog):
    for _ in range(1003):
        recorder.record(STARTING)
    assert [record.msg.partition(",")[0] for record in caplog.records] == [
        "Unable to record event: too many queued events"
    ]
    assert outcomes() == {"dropped": 3}


class Crowd:
    """Others that go first until a test says otherwise."""

    is_there = True

    def __call__(self):
        return self.is_there


@pytest.fixture
def crowd():
    return Crowd()


@pytest.fixture
def polite(make, crowd):
    """A recorder whose events wait while the crowd is there."""
    return make(TokenBucket(2, 5), gives_way=crowd)


async def test_events_wait_while_others_go_first(polite, loop, sent, clock, crowd):
    async with running(loop):
        polite.record(STARTING)
        await clock.advance(3)
        polite.record(NodeEvent("NodeReady", "ready"))
        assert reasons(sent) == []
        crowd.is_there = False
        await clock.advance(1)
    assert reasons(sent) == ["Starting", "NodeReady"]


async def test_events_wait_for_others_no_longer_than_30_seconds(polite, loop, sent, clock):
    async with running(loop):
        polite.record(STARTING)
        await clock.advance(29)
        assert reasons(sent) == []
        await clock.advance(2)
        polite.record(NodeEvent("NodeReady", "ready"))
        await clock.advance(0)
    assert reasons(sent) == ["Starting", "NodeReady"]


async def test_events_wait_for_nobody_at_the_end_of_the_process(polite, loop, sent, clock):
    async with running(loop):
        polite.record(STARTING)
        await clock.advance(0)
        await polite.drained()
    assert sent.times("create") == [0]


async def test_events_that_wait_for_others_have_twice_the_room(polite, loop, clock, outcomes):
    async with running(loop):
        polite.record(STARTING)
        await clock.advance(0)
        for _ in range(2001):
            polite.record(STARTING)
    assert outcomes() == {"dropped": 2}


async def test_five_events_are_sent_at_once_and_then_two_a_second(recorder, loop, sent, clock):
    for number in range(9):
        recorder.record(NodeEvent("Many", str(number)))
    async with running(loop):
        await clock.advance(10)
    assert sent.times("create") == [0, 0, 0, 0, 0, 0.5, 1, 1.5, 2]


async def test_drained_means_that_everything_recorded_was_sent(recorder, loop, sent, clock):
    sent.fail = lambda _: Unavailable("away")
    recorder.record(STARTING)
    async with running(loop):
        drained = asyncio.ensure_future(recorder.drained())
        await clock.advance(1)
        assert not drained.done()
        sent.fail = lambda _: None
        await clock.advance(10)
        assert drained.done()
    assert reasons(sent) == ["Starting"]


async def test_what_is_gone_is_forgotten_after_its_last_event_is_sent(recorder, loop, sent):
    pod = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}
    async with running(loop):
        for _ in range(2):  # the second one counts no further on the first
            recorder.record(NodeEvent("Killing", "Stopping container c"), pod)
            recorder.record(NodeEvent("Killing", "Stopping container c"), pod)
            recorder.forget("u")
            await recorder.drained()
    assert [event["count"] for event in sent.objects.values()] == [2, 2]


async def test_events_are_counted_as_sent_or_dropped(recorder, loop, sent, clock, outcomes):
    async with running(loop):
        recorder.record(STARTING)
        await clock.advance(1)
        sent.fail = lambda _: Forbidden("no")
        recorder.record(STARTING._replace(reason="Other"))
        await clock.advance(1)
    assert outcomes() == {"sent": 1, "dropped": 1}


async def test_an_event_that_is_still_tried_is_neither(recorder, loop, sent, clock, outcomes):
    sent.fail = lambda _: Unavailable("away")
    async with running(loop):
        recorder.record(STARTING)
        await clock.advance(30)
    assert outcomes() == {}


async def test_an_event_is_tried_at_once_when_the_api_server_is_back(recorder, loop, sent, clock, dependencies):
    sent.fail = lambda _: Unavailable("away")
    recorder.record(STARTING)
    async with running(loop):
        await clock.advance(6)
        sent.fail = lambda _: None
        dependencies.connectivity.notify_recovered()
        await clock.advance(0)
    assert sent.times("create") == [0, 5, 6]


async def test_an_event_waits_as_long_as_the_api_server_asks_for(recorder, loop, sent, clock, dependencies):
    sent.fail = lambda _: Unavailable("busy", retry_after_seconds=20)
    recorder.record(STARTING)
    async with running(loop):
        await clock.advance(6)
        dependencies.connectivity.notify_recovered()
        await clock.advance(25)
    assert sent.times("create") == [0, 25]
