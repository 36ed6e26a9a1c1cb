"""What the loops count for /metrics."""

import pytest

from agent.ports import Forbidden
from tests.fakes import host_snapshot, running
from tests.settings import Heartbeat

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
