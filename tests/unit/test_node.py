import asyncio
from dataclasses import replace

import pytest

from agent.core.pressure import parse_thresholds
from agent.node import PodClients
from tests.fakes import FakeEvents, FakePods, running
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


class SlowPods(FakePods):
    """Pods whose API server takes a moment for each status."""

    async def patch_status(self, namespace, name, patch):
        await asyncio.sleep(0)
        return await super().patch_status(namespace, name, patch)


async def test_all_of_a_crowd_of_pods_run_before_their_events_are_sent(make_node, clock, clients):
    pods, events, running_pods = SlowPods(clock), FakeEvents(clock), []
    events.fail = lambda _: running_pods.append(sum(pods.phase(name) == "Running" for name in pods.objects))
    for number in range(100):
        pods.add(f"p{number}")
    node = make_node(clients=replace(clients, pods=PodClients(pods=pods, events=events)), pods=pods)
    async with running(*node.tasks):
        await clock.advance(20)
    assert running_pods[0] > 80  # a few of the last are still with their workers
    assert len(events.objects) == 300
