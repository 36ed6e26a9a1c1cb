import pytest

from agent.controllers.registration import NodeRegistrar
from agent.ports import Forbidden, Rejected, Unavailable
from tests.fakes import FakeRecorder, running

pytestmark = pytest.mark.anyio


class Until:
    """Calls `sync` whenever it is due, until the Node is there."""

    def __init__(self, registration, clock):
        self._registration, self._clock = registration, clock

    async def run(self):
        while delay_seconds := await self._registration.sync():
            await self._clock.sleep(delay_seconds)


@pytest.fixture
def events():
    return FakeRecorder()


@pytest.fixture
def registration(state, nodes, events, scheduling):
    return NodeRegistrar(state, nodes, events, scheduling)


async def test_a_missing_node_is_created_once(registration, nodes, state, events):
    assert await registration.sync() == 0
    assert not state.wants_registration
    assert [verb for _, verb in nodes.calls] == ["create"]
    assert state.uid == nodes.objects["n1"]["metadata"]["uid"]
    assert events.reasons == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


@pytest.mark.parametrize("create_error", [None, Forbidden("may not create")], ids=["exists", "forbidden"])
async def test_a_node_that_is_there_is_reconciled_and_keeps_its_uid(registration, nodes, state, create_error):
    before = await nodes.create({"metadata": {"name": "n1", "labels": {"mine": "kept"}}, "status": {}})
    nodes.fail = lambda verb: create_error if verb == "create" else None
    assert await registration.sync() == 0
    after = nodes.objects["n1"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"]["mine"] == "kept"
    assert after["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert state.uid == nodes.objects["n1"]["metadata"]["uid"]


async def test_a_start_tells_the_pressure_conditions_though_the_node_has_them(registration, nodes, events):
    known = [{"type": kind, "status": "False"} for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    await nodes.create({"metadata": {"name": "n1"}, "status": {"conditions": known}})
    assert await registration.sync() == 0
    assert events.reasons == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


@pytest.mark.parametrize(("made_by_others", "told"), [(True, 0), (False, 3)])
async def test_a_node_that_others_made_again_is_told_of_by_its_first_report(
    registration, nodes, state, events, clock, made_by_others, told
):
    assert await registration.sync() == 0
    await nodes.delete("n1")
    state.forget()
    before = len(events.reasons)
    async with running(Until(registration, clock)):
        if made_by_others:
            await nodes.create({"metadata": {"name": "n1"}, "status": {}})
        await clock.advance(0.5)
    assert len(events.reasons) == before + told
    assert nodes.objects["n1"]["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


async def test_whoever_deletes_a_node_has_the_time_to_make_it_again(registration, nodes, state, clock):
    assert await registration.sync() == 0
    await nodes.delete("n1")
    state.forget()
    nodes.calls.clear()
    async with running(Until(registration, clock)):
        await clock.advance(0.4)
        assert nodes.calls == []
        await clock.advance(0.1)
        assert nodes.times("create") == [0.5]


async def test_a_node_that_the_watch_has_shown_already_is_not_asked_for(registration, nodes, state, clock):
    assert await registration.sync() == 0
    await nodes.delete("n1")
    made = await nodes.create({"metadata": {"name": "n1"}, "status": {}})
    state.put(made)
    nodes.calls.clear()
    async with running(Until(registration, clock)):
        await clock.advance(0.5)
    assert [verb for _, verb in nodes.calls] == ["patch_status"]
    assert state.uid == made["metadata"]["uid"]
    assert nodes.objects["n1"]["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"


async def test_one_that_is_gone_again_before_the_watch_tells_of_it_is_made(registration, nodes, state, clock):
    assert await registration.sync() == 0
    await nodes.delete("n1")
    state.put(await nodes.create({"metadata": {"name": "n1"}, "status": {}}))
    await nodes.delete("n1")
    async with running(Until(registration, clock)):
        await clock.advance(1)
    assert state.uid == nodes.objects["n1"]["metadata"]["uid"]


@pytest.mark.parametrize("error", [Unavailable("away"), Rejected("wrong"), Forbidden("no")], ids=["away", "422", "403"])
async def test_registration_is_tried_without_end(registration, nodes, clock, state, error):
    nodes.fail = lambda _: error
    async with running(Until(registration, clock)):
        await clock.advance(27)
        assert nodes.times("create") == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7, 19.7, 26.7])
        nodes.fail = lambda _: None
        await clock.advance(7)
    assert state.uid == nodes.objects["n1"]["metadata"]["uid"]


async def test_a_forbidden_creation_is_what_the_log_tells(registration, nodes, clock, caplog):
    nodes.fail = lambda verb: Forbidden("system:anonymous may not create nodes") if verb == "create" else None
    async with running(Until(registration, clock)):
        pass
    record = next(r for r in caplog.records if r.msg == "Unable to register node with API server")
    assert "system:anonymous may not create nodes" in str(record.args["err"])


async def lives(registration, state, nodes, clock, seconds):
    """Have the Node registered, live for so long and be deleted; the seconds until it is registered again."""
    async with running(Until(registration, clock)):
        await clock.advance(400)
    await clock.advance(seconds)
    await nodes.delete("n1")
    state.forget()
    return await registration.sync()


async def test_a_node_that_is_deleted_again_and_again_returns_ever_later_and_says_so_once(
    registration, state, nodes, clock, caplog
):
    waits = [await lives(registration, state, nodes, clock, 1) for _ in range(11)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 150, 150]
    assert [record.args["most"] for record in caplog.records if record.levelname == "WARNING"] == ["5m0s"]
    assert await lives(registration, state, nodes, clock, 600) == 0.5
