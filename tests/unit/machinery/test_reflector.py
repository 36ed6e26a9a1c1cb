from dataclasses import replace
from itertools import pairwise

import pytest

from agent.machinery.reflector import Demultiplexer, Reflector
from agent.ports import Change, Expired, Unavailable, Untrusted
from tests.fakes import FakeReflectorStore, ScriptedWatch, running

pytestmark = pytest.mark.anyio

NODE = {"metadata": {"name": "n1"}}


@pytest.fixture
def make(state, dependencies, loop_health):
    def build(source, *, rand=lambda: 0.0, **options):
        return Reflector(
            "*v1.Node", source, state, dependencies=replace(dependencies, rand=rand), health=loop_health, **options
        )

    return build


@pytest.fixture
def loop(make, nodes):
    return make(nodes)


async def test_what_happens_to_the_node_shows_in_the_copy_without_a_request(loop, nodes, state, clock):
    nodes.put({"metadata": {"name": "n1", "uid": "uid-1"}, "spec": {}, "status": {}})
    async with running(loop):
        assert state.node()["metadata"]["name"] == "n1"
        await nodes.patch("n1", {"spec": {"unschedulable": True}})
        await clock.advance(0)
        assert state.node()["spec"] == {"unschedulable": True}
        await nodes.delete("n1")
        await clock.advance(0)
        assert state.node() is None
    assert [verb for _, verb in nodes.calls if verb in {"list", "watch", "get"}] == ["list", "watch"]


async def test_a_watch_is_asked_for_5_to_10_minutes_and_goes_on_where_it_ended(make, nodes, clock):
    chances = iter([0.0, 0.5, 0.999, *[0.0] * 9])
    loop = make(nodes, rand=lambda: next(chances))
    async with running(loop):
        await clock.advance(800)
    assert nodes.watch_seconds == [300, 450, 600]
    assert nodes.times("list") == [0]


async def test_a_version_that_is_too_old_has_everything_listed_again(make, clock):
    source = ScriptedWatch(clock, Expired("too old"))
    async with running(make(source)):
        await clock.advance(1)
    assert source.calls == [(0, "list"), (0, "watch 5"), (0.2, "list"), (0.2, "watch 5")]


async def test_a_bookmark_moves_the_place_from_which_a_watch_goes_on(make, clock):
    source = ScriptedWatch(clock, Change("BOOKMARK", {"metadata": {"resourceVersion": "9"}}))
    async with running(make(source)):
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


async def test_a_watch_beside_the_primary_one_waits_for_it(make, nodes, clock, dependencies):
    nodes.fail = lambda _: Unavailable("away")
    async with running(make(nodes, is_primary=False)):
        await clock.advance(60)
        assert nodes.times("list") == pytest.approx([0, 0.8, 2.4, 5.6, 12.0, 24.8, 50.4])
        nodes.fail = lambda _: None
        dependencies.connectivity.notify_recovered()
        await clock.advance(1)
    assert nodes.times("watch")[0] == pytest.approx(60)


@pytest.mark.parametrize(("chance", "back_at"), [(0.0, 60.8), (0.9, 61.52)])
async def test_chance_spreads_the_return_over_twice_the_time(make, nodes, clock, chance, back_at):
    async with running(make(nodes, rand=lambda: chance)):
        await clock.advance(60)
        nodes.cut()
        await clock.advance(5)
    assert nodes.times("watch")[-1] == pytest.approx(back_at)


async def test_a_watch_that_ends_as_soon_as_it_begins_is_a_failure(make, clock):
    source = ScriptedWatch(clock, *[0.0] * 9, 60.0)
    async with running(make(source)):
        await clock.advance(20)
    assert [at for at, call in source.calls if call == "watch 5"] == pytest.approx([0.2 * n for n in range(10)])


async def test_after_a_good_hour_patience_starts_from_the_beginning(nodes, loop, clock):
    async with running(loop):
        await clock.advance(3650)
        nodes.cut()
        await clock.advance(1)
        assert nodes.times("watch")[-1] == pytest.approx(3650.8)


def pod(name, node_name):
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"nodeName": node_name}}


def test_each_object_reaches_the_store_of_its_node_whatever_happens_to_the_others(dependencies):
    demultiplexer = Demultiplexer(lambda obj: obj["spec"]["nodeName"], dependencies.unexpected.isolation("pods"))
    demultiplexer.stores |= {
        "n0": FakeReflectorStore(broken=True),
        "n1": FakeReflectorStore(),
        "n2": FakeReflectorStore(),
    }
    demultiplexer.reset([pod("a", "n0"), pod("b", "n1"), pod("c", "elsewhere"), pod("d", "n1")], "7")
    demultiplexer.put(pod("e", "n2"))
    demultiplexer.put(pod("f", "elsewhere"))
    demultiplexer.remove({"metadata": {"name": "b", "uid": "uid-b"}})  # as the door lets it in
    demultiplexer.remove({"metadata": {"name": "f", "uid": "uid-f"}})
    assert demultiplexer.stores["n1"].calls == [("reset", ["b", "d"], "7"), ("remove", "b")]
    assert demultiplexer.stores["n2"].calls == [("reset", [], "7"), ("put", "e")]
