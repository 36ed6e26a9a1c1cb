import asyncio

import pytest

from agent.core.events import STARTING, NodeEvent
from agent.core.schedule import Pace
from agent.loops.events import EventLoop
from agent.loops.weather import Weather
from agent.ports import Forbidden, Unavailable
from tests.fakes import FakeObjects, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def sent(clock):
    return FakeObjects(clock)


@pytest.fixture
def loop(sent, clock):
    return EventLoop(node_name="n1", events=sent, weather=Weather(clock, lambda: 0.5), clock=clock, pace=Pace(2, 5))


def reasons(sent):
    return [event["reason"] for event in sent.objects.values()]


async def test_events_are_sent_in_the_order_they_were_recorded(loop, sent):
    loop.record(STARTING)
    loop.record(NodeEvent("NodeReady", "ready"))
    async with running(loop):
        assert reasons(sent) == ["Starting", "NodeReady"]


async def test_an_event_waits_for_a_server_that_is_away(loop, sent, clock):
    sent.fail = lambda _: Unavailable("away")
    loop.record(STARTING)
    async with running(loop):
        await clock.advance(14)
        assert sent.times("create") == [0, 5]
        sent.fail = lambda _: None
        await clock.advance(1)
    assert reasons(sent) == ["Starting"]


async def test_an_event_is_given_up_after_twelve_tries_and_the_next_one_goes_on(loop, sent, clock):
    sent.fail = lambda _: Unavailable("away")
    loop.record(STARTING)
    async with running(loop):
        await clock.advance(600)
        assert len(sent.times("create")) == 12
        sent.fail = lambda _: None
        loop.record(NodeEvent("NodeReady", "ready"))
        await clock.advance(0)
    assert reasons(sent) == ["NodeReady"]


async def test_an_event_that_the_server_refuses_is_dropped_at_once(loop, sent):
    sent.fail = lambda _: Forbidden("no")
    loop.record(STARTING)
    async with running(loop):
        assert sent.times("create") == [0]


async def test_the_same_again_is_counted_on_the_first_and_made_anew_once_that_expired(loop, sent, clock):
    async with running(loop):
        for _ in range(2):
            loop.record(STARTING)
        await clock.advance(0)
        (event,) = sent.objects.values()
        assert event["count"] == 2
        sent.objects.clear()
        loop.record(STARTING)
        await clock.advance(0)
        (event,) = sent.objects.values()
        assert event["count"] == 3


def test_a_full_queue_drops_the_event_says_so_once_and_never_waits(loop, caplog):
    for _ in range(1003):
        loop.record(STARTING)
    assert [record.msg.partition(",")[0] for record in caplog.records] == [
        "Unable to record event: too many queued events"
    ]
    assert loop.outcomes.value("dropped") == 3


async def test_five_events_are_sent_at_once_and_then_two_a_second(loop, sent, clock):
    for number in range(9):
        loop.record(NodeEvent("Many", str(number)))
    async with running(loop):
        await clock.advance(10)
    assert sent.times("create") == [0, 0, 0, 0, 0, 0.5, 1, 1.5, 2]


async def test_drained_means_that_everything_recorded_was_sent(loop, sent, clock):
    sent.fail = lambda _: Unavailable("away")
    loop.record(STARTING)
    async with running(loop):
        drained = asyncio.ensure_future(loop.drained())
        await clock.advance(1)
        assert not drained.done()
        sent.fail = lambda _: None
        await clock.advance(10)
        assert drained.done()
    assert reasons(sent) == ["Starting"]


async def test_what_is_gone_is_forgotten_after_its_last_event_is_sent(loop, sent):
    pod = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"}
    async with running(loop):
        for _ in range(2):  # the second one counts no further on the first
            loop.record(NodeEvent("Killing", "Stopping container c"), pod)
            loop.record(NodeEvent("Killing", "Stopping container c"), pod)
            loop.forget("u")
            await loop.drained()
    assert [event["count"] for event in sent.objects.values()] == [2, 2]
