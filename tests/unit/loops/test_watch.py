from itertools import pairwise

import pytest

from agent.loops.ownnode import OwnNode
from agent.loops.watch import WatchLoop
from agent.loops.weather import Weather
from agent.ports import Change, Expired, Listed, Unavailable, Untrusted
from tests.fakes import FakeClock, FakeObjects, running

pytestmark = pytest.mark.anyio

NODE = {"metadata": {"name": "n1"}}


@pytest.fixture
def loop(nodes, own, clock, weather):
    return WatchLoop(kind="*v1.Node", source=nodes, copy=own, clock=clock, weather=weather)


class Scripted:
    """A source whose watches end as a test says."""

    def __init__(self, clock, *ends):
        self.clock, self.ends, self.calls = clock, list(ends), []

    async def list(self):
        self.calls.append((self.clock.elapsed, "list"))
        return Listed([], "5")

    async def watch(self, version, *, seconds):
        self.calls.append((self.clock.elapsed, f"watch {version}"))
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, Exception):
            raise end
        yield Change("OPENED", {})
        if isinstance(end, Change):
            yield end
        await self.clock.sleep(end if isinstance(end, float) else seconds)


async def test_what_happens_to_the_node_shows_in_the_copy_without_a_request(loop, nodes, own, clock):
    await nodes.create(NODE)
    async with running(loop):
        assert own.node["metadata"]["name"] == "n1"
        await nodes.patch("n1", {"spec": {"unschedulable": True}})
        await clock.advance(0)
        assert own.node["spec"] == {"unschedulable": True}
        await nodes.delete("n1")
        await clock.advance(0)
        assert own.node is None
    assert [verb for _, verb in nodes.calls if verb in {"list", "watch", "get"}] == ["list", "watch"]


async def test_a_watch_is_asked_for_5_to_10_minutes_and_goes_on_where_it_ended(nodes, own, clock):
    chances = iter([0.0, 0.5, 0.999, *[0.0] * 9])
    loop = WatchLoop(kind="", source=nodes, copy=own, clock=clock, weather=Weather(clock, lambda: next(chances)))
    async with running(loop):
        await clock.advance(800)
    assert nodes.watch_seconds == [300, 450, 600]
    assert nodes.times("list") == [0]


async def test_a_version_that_is_too_old_has_everything_listed_again(own, clock, weather):
    source = Scripted(clock, Expired("too old"))
    async with running(WatchLoop(kind="", source=source, copy=own, clock=clock, weather=weather)):
        await clock.advance(1)
    assert source.calls == [(0, "list"), (0, "watch 5"), (0.2, "list"), (0.2, "watch 5")]


async def test_a_bookmark_moves_the_place_from_which_a_watch_goes_on(own, clock, weather):
    source = Scripted(clock, Change("BOOKMARK", {"metadata": {"resourceVersion": "9"}}))
    async with running(WatchLoop(kind="", source=source, copy=own, clock=clock, weather=weather)):
        await clock.advance(301)
    assert [call for _, call in source.calls] == ["list", "watch 5", "watch 9"]


@pytest.mark.parametrize(("error", "least"), [(Unavailable("away"), 0.2), (Untrusted("a stranger"), 0.7)])
async def test_a_server_that_is_away_is_asked_less_and_less_often(nodes, loop, clock, error, least):
    nodes.fail = lambda _: error
    async with running(loop):
        await clock.advance(7200)
    times = nodes.times("list")
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == pytest.approx([min(max(least, since / 120), 30.0) for since in times[:-1]])


async def test_an_outage_is_told_of_less_often_than_it_is_met(nodes, loop, clock, caplog):
    nodes.fail = lambda _: Unavailable("away")
    async with running(loop):
        await clock.advance(25)
        assert len(nodes.times("list")) > 50
        assert 3 <= [record.msg for record in caplog.records].count("Failed to watch") <= 7
        nodes.fail = lambda _: None
        await clock.advance(60)
        caplog.clear()
        nodes.cut()
        await clock.advance(1)
    assert [record.msg for record in caplog.records] == ["Failed to watch"]  # the next outage is told of at once


async def test_a_watch_beside_the_scout_waits_for_it(nodes, own, clock, weather):
    nodes.fail = lambda _: Unavailable("away")
    async with running(WatchLoop(kind="", source=nodes, copy=own, clock=clock, weather=weather, is_scout=False)):
        await clock.advance(60)
        assert nodes.times("list") == pytest.approx([0, 0.8, 2.4, 5.6, 12.0, 24.8, 50.4])
        nodes.fail = lambda _: None
        weather.improved()
        await clock.advance(1)
    assert nodes.times("watch")[0] == pytest.approx(60)


async def test_chance_spreads_the_return_over_twice_the_time():
    times = []
    for chance in (0.0, 0.9):
        clock = FakeClock()
        nodes = FakeObjects(clock)
        own = OwnNode(membership=_NoMembership())
        weather = Weather(clock, lambda chance=chance: chance)
        async with running(WatchLoop(kind="", source=nodes, copy=own, clock=clock, weather=weather)):
            await clock.advance(60)
            nodes.cut()
            await clock.advance(5)
        times.append(nodes.times("watch")[-1])
    assert times == pytest.approx([60.8, 61.52])


class _NoMembership:
    def seen(self, uid):
        pass

    def lost(self):
        pass


async def test_a_watch_that_ends_as_soon_as_it_begins_is_a_failure(own, clock, weather):
    source = Scripted(clock, *[0.0] * 9, 60.0)
    async with running(WatchLoop(kind="", source=source, copy=own, clock=clock, weather=weather)):
        await clock.advance(20)
    assert [at for at, call in source.calls if call == "watch 5"] == pytest.approx([0.2 * n for n in range(10)])


async def test_after_a_good_hour_patience_starts_from_the_beginning(nodes, loop, clock):
    async with running(loop):
        await clock.advance(3650)
        nodes.cut()
        await clock.advance(1)
        assert nodes.times("watch")[-1] == pytest.approx(3650.8)


async def test_an_older_state_does_not_replace_a_newer_one(own):
    own.put({"metadata": {"uid": "u", "resourceVersion": "10"}, "spec": {"new": True}})
    own.put({"metadata": {"uid": "u", "resourceVersion": "9"}})
    assert own.node["spec"] == {"new": True}


async def test_a_list_from_before_the_node_was_created_does_not_delete_it(own, membership):
    membership.joined("u")
    own.put({"metadata": {"uid": "u", "resourceVersion": "10"}})
    own.reset([], "9")
    assert membership.uid == "u"
    own.reset([], "11")
    assert membership.uid is None


async def test_a_node_that_the_cluster_gave_up_wakes_the_status_loop(own, readiness):
    woken = []
    readiness.subscribe(lambda: woken.append(True))
    own.put({"metadata": {"uid": "u", "resourceVersion": "1"}, "status": {}})
    woken.clear()
    unknown = {"type": "Ready", "status": "Unknown"}
    own.put({"metadata": {"uid": "u", "resourceVersion": "2"}, "status": {"conditions": [unknown]}})
    assert woken
