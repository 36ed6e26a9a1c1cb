"""What the loops count for /metrics."""

import asyncio
from dataclasses import replace

import pytest

from agent.core.nodestatus import is_ready
from agent.machinery.health import NodeDetails
from agent.ports import Forbidden, NodeDeleted
from agent.process import Process
from tests.fakes import host_snapshot, running
from tests.settings import Heartbeat, NodeConfig, Registration

pytestmark = pytest.mark.anyio


async def test_status_reports_are_counted_by_why_they_were_sent_or_not(make_node, clock, nodes, host):
    node = make_node(heartbeat=Heartbeat(status_update_seconds=10.0, status_report_seconds=30.0))
    async with running(*node.tasks):
        await clock.advance(15)
        name, before = "fake_kubelet_status_reports_total", node.metric("fake_kubelet_status_reports_total")
        host.current = host_snapshot(memory_bytes=4 * 2**30)
        await clock.advance(2)
        assert node.metric(name)["sent", "changed"] == before["sent", "changed"] + 1
        await clock.advance(60)
        assert node.metric(name)["skipped", "unchanged"] >= before["skipped", "unchanged"] + 3
        assert node.metric(name)["sent", "due"] >= 1
        nodes.fail = lambda verb: Forbidden("no") if verb in {"patch_status", "get"} else None
        await clock.advance(60)
        assert node.metric(name)["failed", "error"] >= 1


async def test_watches_that_break_are_counted_by_their_type(make_node, clock, nodes):
    node = make_node()
    async with running(*node.tasks):
        await clock.advance(15)
        nodes.cut()
        await clock.advance(5)
        assert node.metric("fake_kubelet_watch_restarts_total") == {("*v1.Node",): 1}


@pytest.fixture
def host_nodes(process, clients, nodes):
    """Nodes of one process, with the given names."""

    def build(names):
        hosted = [process.add(NodeConfig(node_name=name), clients) for name in names]
        process.reflect(nodes)
        process.start()
        return hosted

    return build


async def test_two_nodes_of_a_process_are_registered_renewed_and_deleted_apart(
    process, host_nodes, clock, nodes, leases, csinodes
):
    first, second = host_nodes(["n1", "n2"])
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(25)
        assert set(nodes.objects) == set(leases.objects) == set(csinodes.objects) == {"n1", "n2"}
        assert all(is_ready(node["status"]) for node in nodes.objects.values())
        assert len(nodes.times("list")) == len(nodes.times("watch")) == 1
        kept, replaced = second.state.uid, first.state.uid
        await nodes.delete("n1")
        await clock.advance(1)
        assert first.state.uid != replaced
        assert second.state.uid == kept
        assert leases.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == first.state.uid


async def test_a_node_that_is_added_while_the_process_runs_lives_as_the_others_do(
    process, host_nodes, clients, clock, nodes, leases
):
    host_nodes(["n1"])
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(15)
        process.add(NodeConfig(node_name="n2"), clients).start()
        await clock.advance(25)
        assert is_ready(nodes.objects["n2"]["status"])
        assert leases.objects.keys() == {"n1", "n2"}
        process.remove("n2")
        await clock.advance(60)
        assert process.nodes.keys() == {"n1"}
        assert process.health.faults() == {}


async def test_workers_are_added_for_nodes_that_come_later(process, host_nodes, clients, clock, nodes):
    host_nodes(["n0"])
    async with running(*process.tasks, *process.lasting_tasks):
        for number in range(1, 40):
            process.add(NodeConfig(node_name=f"n{number}"), clients).start()
        await clock.advance(1)
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert sum(name.startswith("lease-") for name in names) == 16


async def test_a_node_with_a_machine_of_its_own_shows_that_and_the_host_is_not_read(
    process, clients, clock, nodes, host
):
    process.add(NodeConfig(node_name="n1"), clients, host_snapshot(cpu_millicores=96_000, machine_id="m1"))
    process.reflect(nodes)
    process.start()
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(60)
        status = nodes.objects["n1"]["status"]
        assert (status["capacity"]["cpu"], status["nodeInfo"]["machineID"]) == ("96", "m1")
        assert is_ready(status)
        assert host.read_at == []
        assert process.health.faults() == {}


async def test_the_leases_of_a_process_are_renewed_evenly_over_the_period(process, host_nodes, clock, leases):
    host_nodes([f"n{number}" for number in range(100)])
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(40)
        leases.calls.clear()
        await clock.advance(10)
        seconds = [int(at) for at in leases.times("replace")]
        assert all(8 <= seconds.count(second) <= 12 for second in range(40, 50))


async def test_health_metrics_have_the_name_of_the_node_where_that_is_wanted(host, clock, clients, nodes):
    process = Process(host, clock, sensor_seconds=1.0, details=NodeDetails(metrics=True), rand=lambda: 0.0)
    for name in ("n1", "n2"):
        process.add(NodeConfig(node_name=name), clients)
    process.reflect(nodes)
    process.start()
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(5)
    (ages,) = (family for family in process.metrics.families() if family.name == "fake_kubelet_loop_age_seconds")
    leases = {sample.labels["node"]: sample.value for sample in ages.samples if sample.labels["loop"] == "lease"}
    assert leases == {"n1": 5, "n2": pytest.approx(1.2, abs=0.1)}  # the second renews in between
    assert {sample.labels["node"] for sample in ages.samples if sample.labels["loop"] == "sensors"} == {""}


async def test_a_node_that_ends_with_its_node_object_takes_no_other_with_it(
    process, clients, clock, nodes, leases, host
):
    for name in ("n1", "n2"):
        process.add(NodeConfig(node_name=name, registration=Registration(on_node_deleted="exit")), clients)
    process.reflect(nodes)
    process.start()

    async def both_deleted():
        async with running(*process.tasks, *process.lasting_tasks):
            await clock.advance(25)
            await nodes.delete("n1")
            await leases.delete("n1")
            host.current = host_snapshot(memory_bytes=4 * 2**30)
            await clock.advance(60)
            assert nodes.objects.keys() == leases.objects.keys() == {"n2"}
            assert is_ready(nodes.objects["n2"]["status"])
            assert process.health.faults() == {}
            await nodes.delete("n2")
            await clock.advance(1)

    with pytest.RaisesGroup(NodeDeleted):
        await both_deleted()


@pytest.mark.slow
async def test_a_thousand_nodes_have_no_task_of_their_own_and_read_the_host_once_a_second(
    process, host_nodes, clock, nodes, leases, host
):
    host_nodes([f"n{number}" for number in range(1000)])
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(1)
        assert len(nodes.objects) == len(leases.objects) == 1000
        assert len(asyncio.all_tasks()) < 100
        host.read_at.clear()
        leases.calls.clear()
        await clock.advance(20)
        assert len(leases.times("replace")) == 2000
        assert len(host.read_at) <= 20


@pytest.mark.slow
async def test_a_node_that_raises_in_every_sync_delays_no_other(process, clients, nodes, leases, clock, caplog):
    class Broken:
        def __getattr__(self, verb):
            raise RuntimeError("a bug")

    broken = replace(clients, lease_nodes=Broken(), leases=Broken(), status_nodes=Broken(), nodes=Broken())
    process.add(NodeConfig(node_name="broken"), broken)
    for number in range(999):
        process.add(NodeConfig(node_name=f"n{number}"), clients)
    process.reflect(nodes)
    process.start()
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(41)
        assert 4 * 999 <= len(leases.times("replace")) <= 5 * 999
        assert {node.lease_health.missed for name, node in process.nodes.items() if name != "broken"} == {0}
        assert process.health.faults().keys() <= {"lease", "status"}
        assert all(reason.startswith("broken: ") for reason in process.health.faults().values())
