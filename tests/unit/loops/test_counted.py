"""What the loops count for /metrics."""

import pytest

from agent.core.events import STARTING
from agent.core.schedule import Pace
from agent.loops.events import EventLoop
from agent.loops.weather import Weather
from agent.ports import Forbidden, Unavailable
from tests.fakes import FakeObjects, host_snapshot, running
from tests.settings import Heartbeat

pytestmark = pytest.mark.anyio


def counted(node, name):
    (family,) = (family for family in node.families() if family.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


async def test_status_reports_are_counted_by_why_they_were_sent_or_not(make_node, clock, nodes, host):
    node = make_node(heartbeat=Heartbeat(status_update_seconds=10.0, status_report_seconds=30.0))
    async with running(*dict.fromkeys((*node.loops, *node.lasting))):
        await clock.advance(15)
        name, before = "fake_kubelet_status_reports_total", counted(node, "fake_kubelet_status_reports_total")
        host.current = host_snapshot(memory_bytes=4 * 2**30)
        await clock.advance(2)
        assert counted(node, name)["sent", "changed"] == before["sent", "changed"] + 1
        await clock.advance(60)
        assert counted(node, name)["skipped", "unchanged"] >= before["skipped", "unchanged"] + 3
        assert counted(node, name)["sent", "due"] >= 1
        nodes.fail = lambda verb: Forbidden("no") if verb in {"patch_status", "get"} else None
        await clock.advance(60)
        assert counted(node, name)["failed", "error"] >= 1


async def test_watches_that_break_are_counted_by_their_type(make_node, clock, nodes):
    node = make_node()
    async with running(*dict.fromkeys((*node.loops, *node.lasting))):
        await clock.advance(15)
        nodes.cut()
        await clock.advance(5)
        assert counted(node, "fake_kubelet_watch_restarts_total") == {("*v1.Node",): 1}


async def test_events_are_counted_as_sent_or_dropped(clock):
    sent = FakeObjects(clock)
    voice = EventLoop(node_name="n1", events=sent, weather=Weather(clock, lambda: 0.5), clock=clock, pace=Pace(50, 100))
    async with running(voice):
        voice.record(STARTING)
        await clock.advance(1)
        sent.fail = lambda _: Forbidden("no")
        voice.record(STARTING._replace(reason="Other"))
        await clock.advance(1)
    assert (voice.outcomes.value("sent"), voice.outcomes.value("dropped")) == (1, 1)


async def test_an_event_that_is_still_tried_is_neither(clock):
    sent = FakeObjects(clock)
    sent.fail = lambda _: Unavailable("away")
    voice = EventLoop(node_name="n1", events=sent, weather=Weather(clock, lambda: 0.5), clock=clock, pace=Pace(50, 100))
    async with running(voice):
        voice.record(STARTING)
        await clock.advance(30)
    assert voice.outcomes.family().samples == []
