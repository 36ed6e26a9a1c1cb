import pytest

from agent.controllers.csinode import CSINodeController
from agent.machinery.isolation import UnexpectedErrors
from agent.machinery.runner import Runner
from agent.machinery.workqueue import WorkQueue
from agent.ports import Unavailable
from tests.fakes import running

pytestmark = pytest.mark.anyio


@pytest.fixture
def controller(csinodes, readiness, membership, weather, clock):
    controller = CSINodeController(
        node_name="n1",
        csinodes=csinodes,
        readiness=readiness,
        membership=membership,
        weather=weather,
        clock=clock,
        isolation=UnexpectedErrors("n1", clock).isolation("csinode"),
        queue=WorkQueue(clock),
    )
    controller.start()
    return controller


@pytest.fixture
def loop(controller):
    return Runner("csinode", controller._queue)


async def test_the_node_is_not_ready_until_its_csinode_is_there(loop, nodes, csinodes, readiness, membership, clock):
    async with running(loop):
        assert readiness.problems == ("CSINode is not yet initialized",)
        node = await nodes.create({"metadata": {"name": "n1"}})
        membership.joined(node["metadata"]["uid"])
        await clock.advance(0)
        assert readiness.problems == ()
    assert csinodes.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert csinodes.objects["n1"]["spec"] == {"drivers": None}


async def test_a_csinode_of_an_earlier_node_is_replaced_and_our_own_is_kept(loop, nodes, csinodes, membership, clock):
    membership.joined((await nodes.create({"metadata": {"name": "n1"}}))["metadata"]["uid"])
    await csinodes.create({"metadata": {"name": "n1", "ownerReferences": [{"uid": "an earlier one"}]}})
    async with running(loop):
        ours = csinodes.objects["n1"]
        assert ours["metadata"]["ownerReferences"][0]["uid"] == nodes.objects["n1"]["metadata"]["uid"]
        await clock.advance(3600)
        assert csinodes.objects["n1"] is ours


async def test_it_is_tried_again_until_it_works(loop, csinodes, readiness, membership, clock):
    membership.joined("uid-1")
    csinodes.fail = lambda _: Unavailable("away")
    async with running(loop):
        await clock.advance(60)
        assert readiness.problems
        csinodes.fail = lambda _: None
        await clock.advance(7)
        assert not readiness.problems


async def test_a_new_node_gets_a_csinode_of_its_own_and_is_not_ready_before(
    loop, csinodes, readiness, membership, clock
):
    membership.joined("uid-1")
    async with running(loop):
        membership.lost()
        await clock.advance(0)
        assert readiness.problems == ("CSINode is not yet initialized",)
        membership.joined("uid-2")
        await clock.advance(0)
        assert readiness.problems == ()
    assert csinodes.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == "uid-2"
