"""Decisions of the node-lifecycle controller: whether a node is alive, and its taints, labels and pod CIDR."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from agent.core.times import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agent.core.model import Object

NODE_STARTUP_GRACE_SECONDS = 60.0
_UNHEALTHY_ZONE_SHARE = 0.55
_LARGE_ZONE_NODES = 50
_PREFIX = "node.kubernetes.io/"
_NOT_READY, _UNREACHABLE = f"{_PREFIX}not-ready", f"{_PREFIX}unreachable"
_UNSCHEDULABLE = f"{_PREFIX}unschedulable"
_HEARTBEAT_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_CONDITION_TAINTS = {
    ("Ready", "False"): _NOT_READY,
    ("Ready", "Unknown"): _UNREACHABLE,
    ("MemoryPressure", "True"): f"{_PREFIX}memory-pressure",
    ("DiskPressure", "True"): f"{_PREFIX}disk-pressure",
    ("PIDPressure", "True"): f"{_PREFIX}pid-pressure",
    ("NetworkUnavailable", "True"): f"{_PREFIX}network-unavailable",
}
_OWNED_TAINTS = {(key, "NoSchedule") for key in (*_CONDITION_TAINTS.values(), _UNSCHEDULABLE)} | {
    (key, "NoExecute") for key in (_NOT_READY, _UNREACHABLE)
}
_COPIED_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
_TTL = {"node.alpha.kubernetes.io/ttl": "0"}


class EvictionMode(Enum):
    """How the NoExecute taints of not-ready and unreachable nodes are treated."""

    NORMAL = "added and removed as the conditions ask for"
    SUSPENDED = "kept, but added to no node that has none"
    WITHDRAWN = "removed from all nodes"


@dataclass(frozen=True, slots=True)
class NodeHealthData:
    """The last heartbeat and lease renewal of a node, and when the controller saw them by its own clock."""

    heartbeat: str | None
    renewed: str | None
    seen_at_seconds: float


def updated_health(
    before: NodeHealthData | None, node: Object, lease: Object | None, at_seconds: float
) -> NodeHealthData:
    """Return the health data after reading node and lease; another heartbeat or a later renewal is seen now."""
    ready = _find_condition(node, "Ready")
    heartbeat = ready.get("lastHeartbeatTime") if ready else None
    renewed = (lease or {}).get("spec", {}).get("renewTime")
    is_later = renewed is not None and (before is None or before.renewed is None or renewed > before.renewed)
    if before is not None and before.heartbeat == heartbeat and not is_later:
        return before
    return NodeHealthData(heartbeat, renewed if is_later else None, at_seconds)


def is_grace_period_over(health: NodeHealthData, node: Object, at_seconds: float, grace_period_seconds: float) -> bool:
    """Whether a node has sent no heartbeat for longer than its grace period."""
    allowed = grace_period_seconds if _find_condition(node, "Ready") else NODE_STARTUP_GRACE_SECONDS
    return at_seconds > health.seen_at_seconds + allowed


def with_unknown_conditions(node: Object, now: datetime) -> Object:
    """Return the node with the conditions that its kubelet reports set to Unknown."""
    conditions = [_stopped(condition, now) for condition in node["status"].get("conditions", [])]
    types = {condition.get("type") for condition in conditions}
    conditions += [_never_posted(kind, node, now) for kind in _HEARTBEAT_CONDITIONS if kind not in types]
    return node | {"status": node["status"] | {"conditions": conditions}}


def _stopped(condition: Object, now: datetime) -> Object:
    if condition.get("type") not in _HEARTBEAT_CONDITIONS or condition.get("status") == "Unknown":
        return condition
    message = "Kubelet stopped posting node status."
    unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": message}
    return condition | unknown | {"lastTransitionTime": timestamp(now)}


def _never_posted(kind: str, node: Object, now: datetime) -> Object:
    return {
        "type": kind,
        "status": "Unknown",
        "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
        "lastTransitionTime": timestamp(now),
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
    }


class ZoneReadiness:
    """Counts the nodes of each zone that are ready, and those that are not."""

    def __init__(self, nodes: Iterable[Object] = ()) -> None:
        self._counts: Counter[tuple[tuple[str, str], bool]] = Counter()
        for node in nodes:
            self.add(node)

    def add(self, node: Object) -> None:
        """Count a node."""
        self._counts[_zone(node), is_node_ready(node)] += 1

    def remove(self, node: Object) -> None:
        """Do not count a node any more, which was added as it is here."""
        self._counts[_zone(node), is_node_ready(node)] -= 1

    def eviction_mode(self, node: Object) -> EvictionMode:
        """Return how to treat a node: where most of its zone is down, the fault may be the control plane's own."""
        if not any(count for (_, is_ready), count in self._counts.items() if is_ready):
            return EvictionMode.WITHDRAWN
        ready, not_ready = (self._counts[_zone(node), is_ready] for is_ready in (True, False))
        size = ready + not_ready
        is_disrupted = not_ready > 2 and ready and not_ready / size >= _UNHEALTHY_ZONE_SHARE
        return EvictionMode.SUSPENDED if is_disrupted and size <= _LARGE_ZONE_NODES else EvictionMode.NORMAL


def _zone(node: Object) -> tuple[str, str]:
    labels = node["metadata"].get("labels", {})
    return labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")


def is_node_ready(node: Object) -> bool:
    """Whether the node's Ready condition is True."""
    return (_find_condition(node, "Ready") or {}).get("status") == "True"


def with_condition_taints(node: Object, now: datetime, mode: EvictionMode = EvictionMode.NORMAL) -> Object:
    """Return the node with exactly the taints that its conditions ask for; taints of others stay."""
    taints = node["spec"].get("taints", [])
    before = {_key_and_effect(taint) for taint in taints}
    wanted = [taint for taint in _wanted_taints(node) if _is_permitted(taint, before, mode)]
    kept = [
        taint for taint in taints if _key_and_effect(taint) not in _OWNED_TAINTS or _key_and_effect(taint) in wanted
    ]
    present = {_key_and_effect(taint) for taint in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": timestamp(now)}
        for key, effect in wanted
        if (key, effect) not in present
    ]
    if kept + added == taints:
        return node
    spec = {field: value for field, value in node["spec"].items() if field != "taints"}
    return node | {"spec": spec | ({"taints": kept + added} if kept + added else {})}


def _is_permitted(taint: tuple[str, str], before: set[tuple[str, str]], mode: EvictionMode) -> bool:
    """Whether a node may have the taint: one that evicts pods depends on the mode."""
    if taint[1] != "NoExecute" or mode is EvictionMode.NORMAL:
        return True
    has_evicting_taint = bool(before & {(_NOT_READY, "NoExecute"), (_UNREACHABLE, "NoExecute")})
    return mode is EvictionMode.SUSPENDED and has_evicting_taint


def _wanted_taints(node: Object) -> list[tuple[str, str]]:
    wanted = []
    for condition in node["status"].get("conditions", []):
        key = _CONDITION_TAINTS.get((condition.get("type", ""), condition.get("status", "")))
        if key:
            wanted.append((key, "NoSchedule"))
        if key in {_NOT_READY, _UNREACHABLE}:
            wanted.append((key, "NoExecute"))
    if node["spec"].get("unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    return wanted


def _key_and_effect(taint: Object) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def with_beta_labels(node: Object) -> Object:
    """Return the node with the beta names of its os and arch labels, and the ttl annotation."""
    metadata = node["metadata"]
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    copied = {old: labels[name] for name, old in _COPIED_LABELS.items() if name in labels}
    changes = {"annotations": _TTL | annotations}
    if copied:
        changes["labels"] = labels | copied
    return node | {"metadata": metadata | changes}


def with_pod_cidr(node: Object, pod_cidr: str) -> Object:
    """Return the node with this pod CIDR, unless it has one."""
    if node["spec"].get("podCIDR") or not pod_cidr:
        return node
    return node | {"spec": {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} | node["spec"]}


def _find_condition(node: Object, kind: str) -> Object | None:
    return next((entry for entry in node["status"].get("conditions", []) if entry.get("type") == kind), None)
