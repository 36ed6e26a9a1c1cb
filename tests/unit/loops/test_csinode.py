import pytest

from agent.loops.csinode import CSINodeLoop
from agent.loops.readiness import Readiness
from agent.ports import Unavailable
from tests.fakes import FakeObjects, running

pytestmark = pytest.mark.anyio


@pytest.fixture
def csinodes(clock):
    return FakeObjects(clock)


@pytest.fixture
def readiness():
    return Readiness()


@pytest.fixture
def loop(csinodes, nodes, readiness, registered, clock):
    return CSINodeLoop(
        node_name="n1", csinodes=csinodes, nodes=nodes, readiness=readiness, registered=registered, clock=clock
    )


async def test_the_node_is_not_ready_until_its_csinode_is_there(loop, nodes, csinodes, readiness, registered, clock):
    async with running(loop):
        assert readiness.problems == ("CSINode is not yet initialized",)
        node = await nodes.create({"metadata": {"name": "n1"}})
        registered.set()
        await clock.advance(0)
        assert readiness.problems == ()
    assert csinodes.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert csinodes.objects["n1"]["spec"] == {"drivers": None}


async def test_a_csinode_of_an_earlier_node_is_replaced_and_our_own_is_kept(loop, nodes, csinodes, registered):
    await nodes.create({"metadata": {"name": "n1"}})
    await csinodes.create({"metadata": {"name": "n1", "ownerReferences": [{"uid": "an earlier one"}]}})
    await loop.sync()
    ours = csinodes.objects["n1"]
    assert ours["metadata"]["ownerReferences"][0]["uid"] == nodes.objects["n1"]["metadata"]["uid"]
    await loop.sync()
    assert csinodes.objects["n1"] is ours


async def test_it_is_tried_again_until_it_works(loop, nodes, csinodes, readiness, registered, clock):
    await nodes.create({"metadata": {"name": "n1"}})
    registered.set()
    csinodes.fail = lambda _: Unavailable("away")
    async with running(loop):
        await clock.advance(60)
        assert readiness.problems
        csinodes.fail = lambda _: None
        await clock.advance(7)
        assert not readiness.problems
