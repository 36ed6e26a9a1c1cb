import pytest

from agent.controllers.csinode import CSINodeController
from agent.machinery.runner import Runner
from agent.ports import Unavailable
from tests.fakes import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def loop(state, csinodes, queue, scheduling):
    CSINodeController(state, csinodes, scheduling=scheduling).start()
    return Runner("csinode", queue)


async def test_the_node_is_not_ready_until_its_csinode_is_there(loop, nodes, csinodes, state, clock):
    async with running(loop):
        assert state.problems == ("CSINode is not yet initialized",)
        node = await nodes.create({"metadata": {"name": "n1"}})
        state.register(node["metadata"]["uid"])
        await clock.advance(0)
        assert state.problems == ()
    assert csinodes.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert csinodes.objects["n1"]["spec"] == {"drivers": None}


async def test_a_csinode_of_an_earlier_node_is_replaced_and_our_own_is_kept(loop, nodes, csinodes, state, clock):
    state.register((await nodes.create({"metadata": {"name": "n1"}}))["metadata"]["uid"])
    await csinodes.create({"metadata": {"name": "n1", "ownerReferences": [{"uid": "an earlier one"}]}})
    async with running(loop):
        ours = csinodes.objects["n1"]
        assert ours["metadata"]["ownerReferences"][0]["uid"] == nodes.objects["n1"]["metadata"]["uid"]
        await clock.advance(3600)
        assert csinodes.objects["n1"] is ours


async def test_it_is_tried_again_until_it_works(loop, csinodes, state, clock):
    state.register("uid-1")
    csinodes.fail = lambda _: Unavailable("away")
    async with running(loop):
        await clock.advance(60)
        assert state.problems
        csinodes.fail = lambda _: None
        await clock.advance(7)
        assert not state.problems


async def test_a_new_node_gets_a_csinode_of_its_own_and_is_not_ready_before(loop, csinodes, state, clock):
    state.register("uid-1")
    async with running(loop):
        state.forget()
        await clock.advance(0)
        assert state.problems == ("CSINode is not yet initialized",)
        state.register("uid-2")
        await clock.advance(0)
        assert state.problems == ()
    assert csinodes.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == "uid-2"


async def test_as_a_kubelet_it_looks_first_also_for_the_csinode_of_a_new_node(loop, csinodes, state, clock):
    state.register("uid-1", is_new=True)
    async with running(loop):
        await clock.advance(0)
    assert csinodes.times("get") == csinodes.times("create") == [0]
