"""The controllers: upkeep of nodes at every change, their health at its own rhythm, clean-up after deletions."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from agent.minicluster.clock import timestamp
from agent.minicluster.errors import ApiError
from agent.minicluster.kinds.csinode import CSINODES
from agent.minicluster.kinds.event import EVENTS
from agent.minicluster.kinds.lease import LEASES
from agent.minicluster.kinds.namespace import NAMESPACES
from agent.minicluster.kinds.node import NODES
from agent.minicluster.kinds.pod import PODS
from agent.minicluster.lifecycle import (
    Pulse,
    addressed,
    evictions,
    is_ready,
    is_silent,
    labelled,
    observe,
    silenced,
    tainted,
)
from agent.minicluster.resource import DeleteOptions, Object, Resource
from agent.minicluster.store import FIRST_RESOURCE_VERSION

if TYPE_CHECKING:
    from agent.minicluster.registry import Registry
    from agent.minicluster.store import Change

LEASE_NAMESPACE = "kube-node-lease"
POD_NETWORK = "10.244.0.0/16"
_AT_ONCE = DeleteOptions(grace_period_seconds=0)


class NodeUpkeep:
    """Keeps taints, labels and the pod address range of every node right, as soon as it changes."""

    def __init__(self, registry: Registry, *, now: Callable[[], datetime]) -> None:
        self._registry = registry
        self._now = now
        self._ranges = PodRanges()

    async def run(self) -> None:
        """Follow the nodes forever; cancellation is the only way out."""
        store, seen = self._registry.store, FIRST_RESOURCE_VERSION
        while True:
            await store.changed(NODES.key, seen)
            for change in store.changes(NODES.key, seen):
                seen = change.version
                self.react(change)

    def react(self, change: Change) -> None:
        """Answer one change of a node."""
        if change.new is None:
            if change.old is not None:
                self._ranges.release(change.old)
                record(
                    self._registry, change.old, "RemovingNode", "event: Removing Node {} from Controller", self._now()
                )
            return
        name = change.new["metadata"]["name"]
        node = self._registry.store.get(NODES.key, name)
        if node is None or node["metadata"]["uid"] != change.new["metadata"]["uid"]:
            return  # a later change tells the rest
        if change.old is None:
            record(self._registry, node, "RegisteredNode", "event: Registered Node {} in Controller", self._now())
        addressed_node = addressed(node, self._ranges.take(node))
        _retaint(self._registry, labelled(addressed_node), node, self._now())


def _retaint(registry: Registry, node: Object, before: Object, now: datetime) -> None:
    """Give a node the taints it deserves, and store it if it is not what it was before."""
    nodes = [] if is_ready(node) else registry.store.list(NODES.key)  # only taints that evict depend on the others
    wanted = tainted(node, now, evictions(node, nodes))
    if wanted != before:
        registry.store.put(NODES.key, wanted)


class PodRanges:
    """Hands out one range of pod addresses per node."""

    def __init__(self, network: str = POD_NETWORK, prefix_length: int = 24) -> None:
        self._ranges = [str(one) for one in ipaddress.ip_network(network).subnets(new_prefix=prefix_length)]
        self._taken: dict[str, str] = {}

    def take(self, node: Object) -> str:
        """The node's own range, else the first free one, else an empty string."""
        uid, own = node["metadata"]["uid"], node["spec"].get("podCIDR")
        free = (one for one in self._ranges if one not in self._taken or self._taken[one] == uid)
        found = own or next(free, "")
        if found:
            self._taken[found] = uid
        return found

    def release(self, node: Object) -> None:
        """Free the ranges of a node that is gone."""
        uid = node["metadata"]["uid"]
        self._taken = {one: owner for one, owner in self._taken.items() if owner != uid}


class NodeHealth:
    """Turns a node's conditions Unknown when neither its status nor its lease shows life."""

    def __init__(
        self,
        registry: Registry,
        *,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        period_seconds: float,
        grace_period_seconds: float,
    ) -> None:
        self._registry = registry
        self._now = now
        self._monotonic = monotonic
        self._sleep = sleep
        self._period_seconds = period_seconds
        self._grace_period_seconds = grace_period_seconds
        self._pulses: dict[str, Pulse] = {}
        self._all_down = False

    async def run(self) -> None:
        """Check forever; cancellation is the only way out."""
        while True:
            self.sync()
            await self._sleep(self._period_seconds)

    def sync(self) -> None:
        """Check all nodes once."""
        nodes = self._registry.store.list(NODES.key)
        self._pulses = {node["metadata"]["uid"]: self._pulse(node) for node in nodes}
        self._forgive(nodes)
        for node in nodes:
            pulse = self._pulses[node["metadata"]["uid"]]
            if is_silent(pulse, node, self._monotonic(), self._grace_period_seconds):
                self._silence(node)
        for node in self._registry.store.list(NODES.key):
            _retaint(self._registry, node, node, self._now())

    def _forgive(self, nodes: Sequence[Object]) -> None:
        """After a time in which no node was ready, all get a new grace period: it may have been our fault."""
        all_down = bool(nodes) and not any(is_ready(node) for node in nodes)
        if self._all_down and nodes and not all_down:
            now = self._monotonic()
            self._pulses = {uid: replace(pulse, seen_at_seconds=now) for uid, pulse in self._pulses.items()}
        self._all_down = all_down

    def _pulse(self, node: Object) -> Pulse:
        metadata = node["metadata"]
        lease = self._registry.store.get(LEASES.key, metadata["name"], LEASE_NAMESPACE)
        return observe(self._pulses.get(metadata["uid"]), node, lease, self._monotonic())

    def _silence(self, node: Object) -> None:
        unknown = silenced(node, self._now())
        if unknown["status"] == node["status"]:
            return
        self._registry.store.put(NODES.key, unknown)
        if is_ready(node):
            record(self._registry, node, "NodeNotReady", "status is now: NodeNotReady", self._now())


class GarbageCollector:
    """Deletes what belonged to a deleted node or namespace."""

    def __init__(self, registry: Registry, owner: Resource, dependents: tuple[Resource, ...]) -> None:
        self._registry = registry
        self._owner = owner
        self._dependents = dependents

    async def run(self) -> None:
        """Follow the owners forever; cancellation is the only way out."""
        store, seen = self._registry.store, FIRST_RESOURCE_VERSION
        while True:
            await store.changed(self._owner.key, seen)
            for change in store.changes(self._owner.key, seen):
                seen = change.version
                self.react(change)

    def react(self, change: Change) -> None:
        """Clean up after one change."""
        if self._owner is NODES and change.new is None and change.old is not None:
            self._collect(partial(_belongs, change.old))
        if self._owner is NAMESPACES and change.new is not None and "deletionTimestamp" in change.new["metadata"]:
            name = change.new["metadata"]["name"]
            self._collect(lambda obj: obj["metadata"].get("namespace") == name)
            current = self._registry.store.get(NAMESPACES.key, name)
            if current is not None:
                self._registry.store.remove(NAMESPACES.key, current)

    def _collect(self, doomed: Callable[[Object], bool]) -> None:
        for resource, obj in self._found(doomed):
            metadata = obj["metadata"]
            self._registry.delete(resource, metadata.get("namespace", ""), metadata["name"], _AT_ONCE)

    def _found(self, doomed: Callable[[Object], bool]) -> Iterator[tuple[Resource, Object]]:
        for resource in self._dependents:
            for obj in self._registry.store.list(resource.key):
                if doomed(obj):
                    yield resource, obj


def _belongs(node: Object, obj: Object) -> bool:
    owners = {one.get("uid") for one in obj["metadata"].get("ownerReferences", [])}
    bound_to = (obj.get("spec") or {}).get("nodeName")
    return node["metadata"]["uid"] in owners or bound_to == node["metadata"]["name"]


NODE_DEPENDENTS = (LEASES, CSINODES, PODS)
NAMESPACE_CONTENT = (PODS, EVENTS, LEASES)


def record(registry: Registry, node: Object, reason: str, what: str, now: datetime) -> None:
    """Tell the world about a node, as the node controller does."""
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    event = {
        "metadata": {"name": f"{name}.{int(now.timestamp() * 1e9):x}", "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"},
        "reason": reason,
        "message": f"Node {name} {what.format(name)}",
        "source": {"component": "node-controller"},
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
        "type": "Normal",
        "reportingComponent": "node-controller",
    }
    try:
        registry.create(EVENTS, "default", event)
    except ApiError:
        return  # two events of one node in one instant: the first has said it
