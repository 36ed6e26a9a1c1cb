import pytest

from agent.core.pressure import parse_thresholds
from tests.fakes import running
from tests.settings import Eviction

pytestmark = pytest.mark.anyio


async def test_a_portrait_shows_what_the_loops_know(make_node, clock):
    node = make_node(eviction=Eviction(hard=parse_thresholds({"memory.available": "1Gi"})))
    before = node.node.view()
    assert (before.node_name, before.node, before.conditions, before.lease_age_seconds) == ("n1", None, [], None)
    async with running(*node.tasks):
        await clock.advance(12)
        seen = node.node.view()
    conditions = {condition.kind: condition for condition in seen.conditions}
    assert conditions["Ready"].status == "True"
    assert conditions["MemoryPressure"].signals[0][:4] == ("memory.available", "6.0 GiB of 8.0 GiB", 0.75, "1.0 GiB")
    assert [share.resource for share in seen.resources] == ["cpu", "ephemeral-storage", "memory", "pods"]
    assert [renewal.verdict for renewal in seen.renewals] == ["ok", "ok"]
    assert seen.lease_age_seconds == pytest.approx(2.0)
    assert (seen.renew_seconds, seen.lease_seconds, seen.missed, seen.faults) == (10, 40, 0, {})


async def test_the_last_trouble_is_shown_with_its_age(make_node, clock):
    node = make_node()
    node.health.failures_only("watch").failed("no route")
    clock.elapsed += 3
    assert node.node.view().last_trouble == (3, "watch", "no route")
