"""The scheduler on a registry; what a real one does, too, stands in tests/contract/test_scheduling.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.minicluster import ObjectStore
from agent.minicluster.api_resources import NAMESPACES
from agent.minicluster.node_strategy import NODES
from agent.minicluster.pod_strategy import PODS
from agent.minicluster.registry import GenericRegistry
from agent.minicluster.scheduler import Scheduler


class World:
    """A registry and a scheduler that has seen all of its pods."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.seconds = 0
        self.registry = GenericRegistry(self.store, now=self.now)
        self.scheduler = Scheduler(self.registry, now=self.now)
        self.registry.create(NAMESPACES, "", {"metadata": {"name": "default"}})
        self._seen = self.store.resource_version

    def now(self) -> datetime:
        self.seconds += 1
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def node(self, name: str, **spec: Any) -> None:
        status = {"capacity": {"cpu": "2", "memory": "1Gi", "pods": "10"}}
        stored = self.registry.create(NODES, "", {"metadata": {"name": name}, "status": status})
        self.store.put(NODES.key, stored | {"spec": spec})  # without the taint of a new node

    def pod(self, name: str, **spec: Any) -> None:
        containers = [{"name": "c", "image": "i", "resources": {"requests": spec.pop("requests", {})}}]
        self.registry.create(PODS, "default", {"metadata": {"name": name}, "spec": {"containers": containers, **spec}})

    def schedule(self) -> None:
        for change in self.store.changes(PODS.key, self._seen):
            self._seen = change.version
            self.scheduler.observe_pod(change)
        self.scheduler.sync()

    def node_of(self, name: str) -> str | None:
        found = self.store.get(PODS.key, name, "default")
        assert found is not None
        node_name: str | None = found["spec"].get("nodeName")
        return node_name

    def told(self) -> list[tuple[str, str]]:
        """Reason and pod of all events."""
        events = sorted(self.store.list("events"), key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [(event["reason"], event["involvedObject"]["name"]) for event in events]


@pytest.fixture
def world() -> World:
    return World()


def test_the_higher_priority_comes_first_and_then_the_older_pod(world: World) -> None:
    world.pod("second")
    world.pod("third")
    world.pod("first", priorityClassName="system-node-critical")
    world.node("n")
    world.schedule()
    assert world.told() == [("Scheduled", name) for name in ("first", "second", "third")]


def test_a_pod_counts_for_those_after_it(world: World) -> None:
    world.node("a")
    for name in ("first", "second"):
        world.pod(name, requests={"cpu": "1500m"})
    world.schedule()
    assert (world.node_of("first"), world.node_of("second")) == ("a", None)


def test_a_failure_is_reported_once_while_its_reason_stays(world: World) -> None:
    world.pod("p")
    for _ in range(3):
        world.schedule()
    assert world.told() == [("FailedScheduling", "p")]
    world.node("n", unschedulable=True)
    for _ in range(3):
        world.schedule()
    assert world.told() == [("FailedScheduling", "p")] * 2


def test_a_pod_that_nobody_can_read_keeps_no_other_from_its_node(world: World) -> None:
    terms = [{"preference": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}]  # without a weight
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    world.node("n")
    world.pod("malformed", affinity=affinity)
    world.pod("sound")
    world.schedule()
    assert (world.node_of("malformed"), world.node_of("sound")) == (None, "n")
    assert ("FailedScheduling", "malformed") in world.told()


def test_a_pod_that_has_ended_takes_nothing_of_its_node(world: World) -> None:
    world.node("n")
    world.pod("ended", requests={"cpu": "2"})
    world.schedule()
    ended = world.registry.get(PODS, "default", "ended")
    world.store.put(PODS.key, ended | {"status": ended["status"] | {"phase": "Succeeded"}})
    world.pod("next", requests={"cpu": "2"})
    world.schedule()
    assert world.node_of("next") == "n"


def test_a_deleted_pod_is_forgotten(world: World) -> None:
    world.pod("p")
    world.schedule()
    world.registry.delete(PODS, "default", "p")
    world.node("n")
    world.schedule()
    assert world.told() == [("FailedScheduling", "p")]
