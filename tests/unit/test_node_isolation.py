"""A port of a node that raises what nobody expected: one loop fails, and nothing else."""

import asyncio
from itertools import pairwise

import pytest

from agent.core.events import STARTING
from agent.core.pods.static import Manifest
from agent.node import NodeClients, PodClients
from tests.fakes import FailingNodes, FakeEvents, FakeManifests, FakePods, running, settle, succeed
from tests.settings import Pods

pytestmark = pytest.mark.anyio


def bug(_verb):
    return RuntimeError("a bug")


def counted(node):
    return {loop: value for (loop,), value in node.metric("fake_kubelet_unexpected_errors_total").items() if value}


def dropped_events(node):
    return node.metric("fake_kubelet_events_total").get(("dropped",), 0)


@pytest.fixture
def pods(clock):
    return FakePods(clock)


@pytest.fixture
def files():
    return FakeManifests()


@pytest.fixture
def events(clock):
    return FakeEvents(clock)


@pytest.fixture
def pod_events(clock):
    return FakeEvents(clock)


@pytest.fixture
def node(make_node, leases, csinodes, pods, files, events, pod_events, parts):
    """A node with everything on: each of its loops has a port of its own that can fail."""
    clients = NodeClients(
        nodes=parts["registration"],
        status_nodes=parts["status"],
        lease_nodes=parts["lease"],
        leases=leases,
        csinodes=csinodes,
        events=events,
        pods=PodClients(pods=pods, events=pod_events, manifests=files),
    )
    return make_node(clients=clients, nodes=parts["watch"], pods=pods, settings={"pods": Pods(manifest_path="/m")})


@pytest.fixture
def parts(nodes):
    return {name: FailingNodes(nodes) for name in ("registration", "status", "lease", "watch")}


def is_on_time(leases):
    times = leases.times("replace")
    return times and all(later - earlier <= 10.4 for earlier, later in pairwise(times))


@pytest.fixture
def breaking(parts, nodes, csinodes, pods, files, events, pod_events, host):
    """Has one port raise what nobody expected, from each of its methods; and has it work again."""

    async def raising():
        raise RuntimeError("a bug")

    def break_host(broken):
        for name in ("snapshot", "glance"):
            setattr(host, name, raising) if broken else host.__dict__.pop(name, None)

    def switch(what, broken):
        if what == "host":
            break_host(broken)
        elif what == "manifests":
            files.error = RuntimeError("a bug") if broken else None
        else:
            others = {"csinodes": csinodes, "pods": pods, "events": events, "pod events": pod_events}
            port = parts.get(what) or others[what]
            port.fail = bug if broken else succeed
            if what in {"pods", "csinodes"}:
                port.cut()
        if what == "watch":
            nodes.cut()

    return switch


@pytest.mark.parametrize(
    ("what", "loops"),
    [
        ("status", {"status"}),
        ("watch", {"watch"}),
        ("host", {"status", "sensors"}),
        ("pods", {"pods"}),
        ("events", {"events"}),
        ("pod events", {"events"}),
        ("manifests", {"staticpods"}),
    ],
)
async def test_a_port_that_raises_fails_one_loop_and_the_lease_is_on_time(
    node, clock, leases, nodes, pods, breaking, what, loops, caplog
):
    async with running(*node.tasks):
        await clock.advance(15)
        pods.add("before")
        breaking(what, broken=True)
        await clock.advance(30)
        node.node.events.record(STARTING)
        pods.mark("before", labels={"a": "b"})
        await clock.advance(270)
        assert is_on_time(leases)
        assert len(leases.times("replace")) == 31
        assert counted(node).keys() == loops
        assert "lease" not in node.health.faults()
        shown = [record for record in caplog.records if record.msg == "Unexpected error, will retry"]
        assert shown[0].exc_info
        assert len(shown) < 60
        breaking(what, broken=False)
        await clock.advance(400)
        before = counted(node)
        pods.add("after")
        await nodes.patch_status("n1", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
        await clock.advance(60)
        assert pods.phase("after") == "Running"
        assert not node.health.faults()
        assert counted(node) == before
    assert not node.health.stalls()


async def test_a_csinode_that_raises_is_red_and_made_when_it_can_be(node, clock, leases, csinodes, breaking):
    csinodes.fail = bug
    async with running(*node.tasks):
        await clock.advance(200)
        assert is_on_time(leases)
        assert node.health.faults()["csinode"].endswith("unexpected error: RuntimeError: a bug")
        csinodes.fail = succeed
        await clock.advance(40)
        assert "n1" in csinodes.objects
        assert not node.health.faults()


async def test_a_registration_that_raises_is_red_and_tried_again(node, clock, parts, nodes):
    parts["registration"].fail = bug
    async with running(*node.tasks):
        await clock.advance(60)
        assert "n1" not in nodes.objects
        assert "RuntimeError: a bug" in node.health.faults()["status"]
        parts["registration"].fail = succeed
        await clock.advance(40)
        assert not node.health.faults()
    assert "n1" in nodes.objects


async def test_a_renewal_that_raises_is_tried_again_within_a_second_and_the_rhythm_goes_on(node, clock, leases):
    fails = [RuntimeError("a bug")]
    async with running(*node.tasks):
        await clock.advance(15)
        leases.fail = lambda verb: fails.pop() if fails and verb == "replace" else None
        await clock.advance(40)
    assert counted(node) == {"lease": 1}
    assert leases.times("replace") == pytest.approx([10, 20, 20.2, 30.2, 40.2, 50.2])


async def test_renewals_that_raise_all_the_time_are_red_and_not_given_up(node, clock, leases):
    async with running(*node.tasks):
        await clock.advance(15)
        leases.fail = bug
        await clock.advance(60)
        assert "RuntimeError: a bug" in node.health.faults()["lease"]
        assert not node.health.stalls()
        leases.fail = succeed
        began = clock.elapsed
        await clock.advance(10)
        assert leases.times("replace")[-1] - began <= 7
        assert not node.health.faults()


async def test_one_pod_that_raises_is_tried_ever_less_often_and_the_others_go_on(node, clock, pods, caplog):
    async with running(*node.tasks):
        await clock.advance(1)
        pods.fail = lambda verb: RuntimeError("a bug") if verb == "patch bad" else None
        pods.add("bad")
        for number in range(5):
            pods.add(f"good-{number}")
        await clock.advance(1000)
        assert {pods.phase(f"good-{number}") for number in range(5)} == {"Running"}
        assert pods.times("patch bad") == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 812]
        assert counted(node) == {"pods": 11}
        assert not node.health.faults()
        pods.fail = succeed
        await clock.advance(300)
        assert pods.phase("bad") == "Running"
    lines = [record for record in caplog.records if record.msg == "Unexpected error, will retry"]
    assert {record.args["pod"] for record in lines} == {"ns/bad"}
    stacks = [record for record in lines if record.exc_info]
    assert 1 <= len(stacks) <= 4


async def test_pods_that_all_raise_turn_the_loop_red(node, clock, pods):
    async with running(*node.tasks):
        await clock.advance(1)
        pods.fail = lambda verb: RuntimeError("a bug") if verb.startswith("patch") else None
        for number in range(3):
            pods.add(f"p{number}")
        await clock.advance(130)
        assert node.health.faults()["pods"].endswith("unexpected error: RuntimeError: a bug")
        pods.fail = succeed
        await clock.advance(300)
        assert not node.health.faults()


async def test_a_loop_whose_only_pod_raised_is_well_when_that_is_gone(node, clock, pods):
    async with running(*node.tasks):
        await clock.advance(1)
        pods.fail = lambda verb: RuntimeError("a bug") if verb.startswith("patch") else None
        pods.add("bad")
        await clock.advance(130)
        assert "pods" in node.health.faults()
        pods.drop("bad")
        await clock.advance(1)
        assert not node.health.faults()


async def test_a_pod_that_raises_is_not_tried_at_once_with_each_of_its_changes(node, clock, pods):
    async with running(*node.tasks):
        await clock.advance(1)
        pods.fail = lambda verb: RuntimeError("a bug") if verb == "patch bad" else None
        pods.add("bad")
        for number in range(600):
            pods.mark("bad", labels={"a": str(number)})
            await clock.advance(1)
        assert len(pods.times("patch bad")) < 70


async def test_an_object_that_cannot_be_applied_neither_ends_nor_spins_the_watch(node, clock, pods, caplog):
    async with running(*node.tasks):
        await clock.advance(1)
        odd = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "nonsense"}}}]}
        pods.add("odd", spec=odd)
        pods.add("good")
        await clock.advance(200)
        assert pods.phase("good") == "Running"
        assert pods.times("list") == [0]
        assert pods.times("watch") == [0]
        assert counted(node) == {"pods": 8}  # 1, 2, 4 … 128 s apart
        assert {record.args["pod"] for record in caplog.records if "pod" in record.args} == {"ns/odd"}
        pods.cut()  # and it is in the list of the next one, too
        await clock.advance(30)
        pods.add("later")
        pods.drop("odd")
        await clock.advance(15)
        assert pods.phase("later") == "Running"
        before = counted(node)
        await clock.advance(600)
        assert counted(node) == before
        assert [pod.name for pod in node.node.pod_controller.store.infos()] == ["good", "later"]


async def test_a_change_that_cannot_be_applied_does_not_end_the_watch_of_the_node(node, clock, nodes, events):
    async with running(*node.tasks):
        await clock.advance(15)
        ours = nodes.objects["n1"]
        nodes.put({"metadata": {"name": "n1"}})  # what no door would let in
        nodes.put(ours | {"spec": {"unschedulable": True}})
        await clock.advance(15)
        assert nodes.times("watch") == [0]
        assert counted(node) == {"watch": 1}
        assert "NodeNotSchedulable" in [event["reason"] for event in events.objects.values()]


async def test_one_manifest_that_raises_leaves_the_others_alone(node, clock, files, pods):
    good, odd = ({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}} for name in "go")
    odd["spec"]["x"] = {1, 2}  # no JSON
    files.manifests = [Manifest("/m/odd", odd), Manifest("/m/good", good)]
    async with running(*node.tasks):
        await clock.advance(30)
        assert pods.phase("g-n1") == "Running"
        assert counted(node).keys() == {"staticpods"}


async def test_an_event_that_cannot_be_made_or_sent_is_dropped_and_the_next_one_is_sent(node, clock, events):
    async with running(*node.tasks):
        await clock.advance(5)
        sent, dropped = len(events.objects), dropped_events(node)
        node.node.events.record(STARTING, about={"no": "name"})
        events.fail = bug
        node.node.events.record(STARTING._replace(reason="Second"))
        await settle()
        events.fail = succeed
        node.node.events.record(STARTING._replace(reason="Third"))
        await clock.advance(5)
        assert dropped_events(node) == dropped + 2
        assert len(events.objects) == sent + 1
        assert counted(node) == {"events": 2}
        await asyncio.wait_for(node.node.events.drained(), 60)


async def test_a_shutdown_goes_on_when_its_pods_raise(clock, make_node):
    node = make_node()

    async def broken():
        raise RuntimeError("a bug")

    node.node.shutdown._end_pods = broken
    async with running(*node.tasks):
        await clock.advance(5)
        begun = asyncio.create_task(node.node.shutdown.begin())
        await clock.advance(5)
        await begun
        assert node.metric("kubelet_graceful_shutdown_end_time_seconds")[()] > 0
        assert counted(node) == {"shutdown": 1}
