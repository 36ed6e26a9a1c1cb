import pytest

from agent.core.model import Filesystem
from agent.core.nodestatus import find_condition
from agent.core.pressure import parse_thresholds
from tests.fakes import GIB, host_snapshot, running
from tests.settings import Eviction

pytestmark = pytest.mark.anyio

HARD = parse_thresholds({"memory.available": "100Mi"})


@pytest.fixture
def make(make_node):
    def build(*, as_kubelet=False, **settings):
        eviction = Eviction(hard=HARD, as_kubelet=as_kubelet, **settings)
        return make_node(eviction=eviction, sensor_seconds=10.0 if as_kubelet else 1.0)

    return build


def status_of(nodes, kind):
    return find_condition(nodes.objects["n1"]["status"], kind)["status"]


async def test_pressure_is_told_at_the_next_look_not_at_the_next_tick(make, clock, nodes, host):
    async with running(*make().tasks):
        await clock.advance(3.5)
        host.current = host_snapshot(memory_available_bytes=0)
        await clock.advance(0.5)
        assert status_of(nodes, "MemoryPressure") == "True"


async def test_as_a_kubelet_it_waits_for_the_tick(make, clock, nodes, host):
    async with running(*make(as_kubelet=True).tasks):
        await clock.advance(11)
        host.current = host_snapshot(memory_available_bytes=0)
        await clock.advance(8)
        assert status_of(nodes, "MemoryPressure") == "False"
        await clock.advance(12)
        assert status_of(nodes, "MemoryPressure") == "True"


async def test_the_end_of_pressure_is_told_when_the_transition_period_ends(make, clock, nodes, host):
    async with running(*make(transition_seconds=4).tasks):
        host.current = host_snapshot(memory_available_bytes=0)
        await clock.advance(1)
        host.current = host_snapshot()
        await clock.advance(3)
        assert status_of(nodes, "MemoryPressure") == "True"
        await clock.advance(1)
        assert status_of(nodes, "MemoryPressure") == "False"


async def test_nothing_is_sent_more_often_when_nothing_changes(make, clock, nodes, host):
    async with running(*make().tasks):
        await clock.advance(1)
        before = len(nodes.calls)
        await clock.advance(9)
        assert len(nodes.calls) - before <= 1  # the status tick itself
        for free in range(5):
            host.current = host_snapshot(
                memory_available_bytes=(1 + free) * GIB,
                nodefs=Filesystem(capacity_bytes=100 * GIB, available_bytes=free + 50 * GIB, inodes=9, inodes_free=8),
            )
            await clock.advance(1)
        assert len(nodes.calls) - before <= 2


async def test_a_cpu_taken_offline_shows_without_a_restart(make, clock, nodes, host):
    async with running(*make().tasks):
        await clock.advance(1.5)
        host.current = host_snapshot(cpu_millicores=3000)
        await clock.advance(1)
        assert nodes.objects["n1"]["status"]["capacity"]["cpu"] == "3"


async def test_as_a_kubelet_the_size_is_read_once(make, clock, nodes, host):
    async with running(*make(as_kubelet=True).tasks):
        host.current = host_snapshot(cpu_millicores=3000)
        await clock.advance(40)
        assert nodes.objects["n1"]["status"]["capacity"]["cpu"] == "4"


async def test_as_a_kubelet_what_could_not_be_read_at_first_is_told_later(make, clock, nodes, host):
    host.current = host_snapshot(cpu_millicores=0, nodefs=None)
    async with running(*make(as_kubelet=True).tasks):
        await clock.advance(1)
        host.current = host_snapshot()
        await clock.advance(40)
        capacity = nodes.objects["n1"]["status"]["capacity"]
        assert (capacity["cpu"], "ephemeral-storage" in capacity) == ("4", True)


async def test_a_change_is_told_at_once_although_the_host_was_read_within_the_second(make, clock, nodes, host):
    node = make()
    async with running(*node.tasks):
        await clock.advance(12.5)
        node.state.block("network", "no route")  # has the whole host read
        await clock.advance(0.2)
        host.current = host_snapshot(cpu_millicores=3000)
        await clock.advance(0.3)
        assert nodes.objects["n1"]["status"]["capacity"]["cpu"] == "3"
