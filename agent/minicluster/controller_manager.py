"""The controllers of kube-controller-manager that a node needs: node lifecycle, pod CIDRs, garbage collection."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from agent.core.lease import LEASE_NAMESPACE
from agent.core.model import Object
from agent.core.times import timestamp
from agent.minicluster.api_resources import CSINODES, LEASES, NAMESPACES
from agent.minicluster.event_strategy import EVENTS
from agent.minicluster.node_lifecycle import (
    NodeHealthData,
    ZoneReadiness,
    is_grace_period_over,
    is_node_ready,
    updated_health,
    with_beta_labels,
    with_condition_taints,
    with_pod_cidr,
    with_unknown_conditions,
)
from agent.minicluster.node_strategy import NODES
from agent.minicluster.object_store import FIRST_RESOURCE_VERSION
from agent.minicluster.pod_strategy import PODS
from agent.minicluster.status_errors import StatusError
from agent.minicluster.strategy import DeleteOptions, Resource

if TYPE_CHECKING:
    from agent.minicluster.object_store import ObjectChange
    from agent.minicluster.registry import GenericRegistry

CLUSTER_CIDR = "10.244.0.0/16"
_AT_ONCE = DeleteOptions(grace_period_seconds=0)


class NodeReconciler:
    """Sets taints, labels and the pod CIDR of a node whenever it changes."""

    def __init__(self, registry: GenericRegistry, *, now: Callable[[], datetime]) -> None:
        self._registry = registry
        self._now = now
        self._cidrs = CidrAllocator()
        self._zones = ZoneReadiness()
        self._counted = FIRST_RESOURCE_VERSION  # the last change that the zones know

    async def run(self) -> None:
        """Follow the nodes forever; cancellation is the only way out."""
        store, seen = self._registry.store, FIRST_RESOURCE_VERSION
        while True:
            await store.changed(NODES.key, seen)
            for change in store.changes(NODES.key, seen):
                seen = change.version
                self.sync(change)

    def sync(self, change: ObjectChange) -> None:
        """Reconcile the node of one change."""
        if change.new is None:
            if change.old is not None:
                self._cidrs.release(change.old)
                self._record(change.old, "RemovingNode", "event: Removing Node {} from Controller")
            return
        name = change.new["metadata"]["name"]
        node = self._registry.store.get(NODES.key, name)
        if node is None or node["metadata"]["uid"] != change.new["metadata"]["uid"]:
            return  # a later change has the present state
        if change.old is None:
            self._record(node, "RegisteredNode", "event: Registered Node {} in Controller")
        wanted = with_beta_labels(with_pod_cidr(node, self._cidrs.allocate(node)))
        self._count_changes()
        wanted = with_condition_taints(wanted, self._now(), self._zones.eviction_mode(wanted))
        if wanted != node:
            self._registry.store.put(NODES.key, wanted)

    def _record(self, node: Object, reason: str, what: str) -> None:
        name = node["metadata"]["name"]
        record_event(self._registry, _reference(node), reason, f"Node {name} {what.format(name)}", self._now())

    def _count_changes(self) -> None:
        """Bring the zones up to date with the store, which may be ahead of the change that is reconciled."""
        for change in self._registry.store.changes(NODES.key, self._counted):
            self._counted = change.version
            if change.old is not None:
                self._zones.remove(change.old)
            if change.new is not None:
                self._zones.add(change.new)


class CidrAllocator:
    """Allocates one pod CIDR per node."""

    def __init__(self, network: str = CLUSTER_CIDR, prefix_length: int = 24) -> None:
        self._cidrs = [str(subnet) for subnet in ipaddress.ip_network(network).subnets(new_prefix=prefix_length)]
        self._owners: dict[str, str] = {}

    def allocate(self, node: Object) -> str:
        """Return the node's own CIDR, else the first free one, else an empty string."""
        uid, own = node["metadata"]["uid"], node["spec"].get("podCIDR")
        free = (cidr for cidr in self._cidrs if self._owners.get(cidr, uid) == uid)
        allocated: str = own or next(free, "")
        if allocated:
            self._owners[allocated] = uid
        return allocated

    def release(self, node: Object) -> None:
        """Free the CIDRs of a deleted node."""
        uid = node["metadata"]["uid"]
        self._owners = {cidr: owner for cidr, owner in self._owners.items() if owner != uid}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMonitorOptions:
    """How often the nodes are checked, and how long a node may be silent."""

    period_seconds: float = 5.0
    grace_period_seconds: float = 50.0
    monotonic: Callable[[], float] = time.monotonic


class NodeMonitor:
    """Sets the conditions of a node to Unknown when neither its heartbeat nor its lease was renewed in time."""

    def __init__(self, registry: GenericRegistry, options: NodeMonitorOptions, *, now: Callable[[], datetime]) -> None:
        self._registry = registry
        self._now = now
        self._monotonic = options.monotonic
        self._period_seconds = options.period_seconds
        self._grace_period_seconds = options.grace_period_seconds
        self._health: dict[str, NodeHealthData] = {}
        self._all_down = False

    async def run(self) -> None:
        """Check forever; cancellation is the only way out."""
        while True:
            self.sync()
            await asyncio.sleep(self._period_seconds)

    def sync(self) -> None:
        """Check all nodes once."""
        nodes = self._registry.store.list(NODES.key)
        self._health = {node["metadata"]["uid"]: self._updated_health(node) for node in nodes}
        self._renew_grace_periods(nodes)
        for node in nodes:
            health = self._health[node["metadata"]["uid"]]
            if is_grace_period_over(health, node, self._monotonic(), self._grace_period_seconds):
                self._mark_unknown(node)
        nodes = self._registry.store.list(NODES.key)
        zones = ZoneReadiness(nodes)
        for node in nodes:
            wanted = with_condition_taints(node, self._now(), zones.eviction_mode(node))
            if wanted != node:
                self._registry.store.put(NODES.key, wanted)

    def _renew_grace_periods(self, nodes: Sequence[Object]) -> None:
        """Give all nodes a new grace period after a time in which none was ready: the fault may be the server's own."""
        all_down = bool(nodes) and not any(is_node_ready(node) for node in nodes)
        if self._all_down and nodes and not all_down:
            now = self._monotonic()
            self._health = {uid: replace(health, seen_at_seconds=now) for uid, health in self._health.items()}
        self._all_down = all_down

    def _updated_health(self, node: Object) -> NodeHealthData:
        metadata = node["metadata"]
        lease = self._registry.store.get(LEASES.key, metadata["name"], LEASE_NAMESPACE)
        return updated_health(self._health.get(metadata["uid"]), node, lease, self._monotonic())

    def _mark_unknown(self, node: Object) -> None:
        unknown = with_unknown_conditions(node, self._now())
        if unknown["status"] == node["status"]:
            return
        self._registry.store.put(NODES.key, unknown)
        if is_node_ready(node):
            message = f"Node {node['metadata']['name']} status is now: NodeNotReady"
            record_event(self._registry, _reference(node), "NodeNotReady", message, self._now())


class GarbageCollector:
    """Deletes the dependents of a deleted node, and the content of a namespace that is being deleted."""

    def __init__(self, registry: GenericRegistry, owner: Resource, dependents: tuple[Resource, ...]) -> None:
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
                self.sync(change)

    def sync(self, change: ObjectChange) -> None:
        """Delete what the owner of one change leaves behind."""
        if self._owner is NODES and change.new is None and change.old is not None:
            self._collect(partial(_depends_on, change.old))
        if self._owner is NAMESPACES and change.new is not None and "deletionTimestamp" in change.new["metadata"]:
            name = change.new["metadata"]["name"]
            self._collect(lambda obj: obj["metadata"].get("namespace") == name)
            current = self._registry.store.get(NAMESPACES.key, name)
            if current is not None:
                self._registry.store.remove(NAMESPACES.key, current)

    def _collect(self, is_dependent: Callable[[Object], bool]) -> None:
        for resource in self._dependents:
            for obj in filter(is_dependent, self._registry.store.list(resource.key)):
                metadata = obj["metadata"]
                self._registry.delete(resource, metadata.get("namespace", ""), metadata["name"], _AT_ONCE)


def _depends_on(node: Object, obj: Object) -> bool:
    owners = {owner.get("uid") for owner in obj["metadata"].get("ownerReferences", [])}
    bound_to = (obj.get("spec") or {}).get("nodeName")
    return node["metadata"]["uid"] in owners or bound_to == node["metadata"]["name"]


NODE_DEPENDENTS = (LEASES, CSINODES, PODS)
NAMESPACE_CONTENT = (PODS, EVENTS, LEASES)


def _reference(node: Object) -> Object:
    metadata = node["metadata"]
    return {"kind": "Node", "name": metadata["name"], "uid": metadata["uid"], "apiVersion": "v1"}


def record_event(
    registry: GenericRegistry,
    about: Object,
    reason: str,
    message: str,
    now: datetime,
    *,
    component: str = "node-controller",
) -> None:
    """Record an event about what an ObjectReference refers to, as a controller does."""
    namespace = about.get("namespace", "default")
    event = {
        "metadata": {"name": f"{about['name']}.{int(now.timestamp() * 1e9):x}", "namespace": namespace},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
        "type": "Normal",
        "reportingComponent": component,
    }
    try:
        registry.create(EVENTS, namespace, event)
    except StatusError:
        return  # two events of one object at one time have one name
