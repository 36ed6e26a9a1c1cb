"""What the control plane decides about a node: whether it lives, and which taints and labels it carries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from agent.minicluster.clock import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agent.minicluster.resource import Object

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
_OWNED = {(key, "NoSchedule") for key in (*_CONDITION_TAINTS.values(), _UNSCHEDULABLE)} | {
    (key, "NoExecute") for key in (_NOT_READY, _UNREACHABLE)
}
_COPIED_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
_TTL = {"node.alpha.kubernetes.io/ttl": "0"}


class Evictions(Enum):
    """What happens to the taints that evict pods."""

    NORMAL = "added and removed as deserved"
    SUSPENDED = "kept, but no node gets a first one"
    WITHDRAWN = "removed from all nodes"


@dataclass(frozen=True, slots=True)
class Pulse:
    """The last sign of life of a node, and when we saw it by our own clock."""

    heartbeat: str | None
    renewed: str | None
    seen_at_seconds: float


def observe(before: Pulse | None, node: Object, lease: Object | None, at_seconds: float) -> Pulse:
    """The pulse after looking again: another heartbeat or a later renewal counts as a sign of life now."""
    ready = condition(node, "Ready")
    heartbeat = ready.get("lastHeartbeatTime") if ready else None
    renewed = (lease or {}).get("spec", {}).get("renewTime")
    is_later = renewed is not None and (before is None or before.renewed is None or renewed > before.renewed)
    if before is not None and before.heartbeat == heartbeat and not is_later:
        return before
    return Pulse(heartbeat, renewed if is_later else None, at_seconds)


def is_silent(pulse: Pulse, node: Object, at_seconds: float, grace_period_seconds: float) -> bool:
    """Whether a node has been quiet for longer than it may."""
    allowed = grace_period_seconds if condition(node, "Ready") else NODE_STARTUP_GRACE_SECONDS
    return at_seconds > pulse.seen_at_seconds + allowed


def silenced(node: Object, now: datetime) -> Object:
    """The node with its heartbeat conditions Unknown."""
    conditions = [_stopped(one, now) for one in node["status"].get("conditions", [])]
    known = {one.get("type") for one in conditions}
    conditions += [_never_posted(kind, node, now) for kind in _HEARTBEAT_CONDITIONS if kind not in known]
    return node | {"status": node["status"] | {"conditions": conditions}}


def _stopped(one: Object, now: datetime) -> Object:
    if one.get("type") not in _HEARTBEAT_CONDITIONS or one.get("status") == "Unknown":
        return one
    message = "Kubelet stopped posting node status."
    unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": message}
    return one | unknown | {"lastTransitionTime": timestamp(now)}


def _never_posted(kind: str, node: Object, now: datetime) -> Object:
    return {
        "type": kind,
        "status": "Unknown",
        "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
        "lastTransitionTime": timestamp(now),
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
    }


def evictions(node: Object, nodes: Iterable[Object]) -> Evictions:
    """How far the control plane trusts what it sees: if a node's whole neighbourhood is down, it may be to blame."""
    zones: dict[tuple[str, str], list[bool]] = {}
    for one in nodes:
        zones.setdefault(_zone(one), []).append(is_ready(one))
    if not any(any(zone) for zone in zones.values()):
        return Evictions.WITHDRAWN
    neighbours = zones.get(_zone(node), [])
    down = neighbours.count(False)
    partly = down > 2 and any(neighbours) and down / len(neighbours) >= _UNHEALTHY_ZONE_SHARE
    return Evictions.SUSPENDED if partly and len(neighbours) <= _LARGE_ZONE_NODES else Evictions.NORMAL


def _zone(node: Object) -> tuple[str, str]:
    labels = node["metadata"].get("labels", {})
    return labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")


def is_ready(node: Object) -> bool:
    """Whether the node says it is ready."""
    return (condition(node, "Ready") or {}).get("status") == "True"


def tainted(node: Object, now: datetime, mode: Evictions = Evictions.NORMAL) -> Object:
    """The node with exactly the condition taints that it deserves; all other taints stay."""
    taints = node["spec"].get("taints", [])
    before = {_name(taint) for taint in taints}
    wanted = [one for one in _deserved(node) if _permitted(one, before, mode)]
    kept = [taint for taint in taints if _name(taint) not in _OWNED or _name(taint) in wanted]
    present = {_name(taint) for taint in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": timestamp(now)}
        for key, effect in wanted
        if (key, effect) not in present
    ]
    if kept + added == taints:
        return node
    spec = {field: value for field, value in node["spec"].items() if field != "taints"}
    return node | {"spec": spec | ({"taints": kept + added} if kept + added else {})}


def _permitted(taint: tuple[str, str], before: set[tuple[str, str]], mode: Evictions) -> bool:
    """Whether a taint may be there: those that evict pods depend on the mode."""
    if taint[1] != "NoExecute" or mode is Evictions.NORMAL:
        return True
    swapped = bool(before & {(_NOT_READY, "NoExecute"), (_UNREACHABLE, "NoExecute")})
    return mode is Evictions.SUSPENDED and swapped


def _deserved(node: Object) -> list[tuple[str, str]]:
    wanted = []
    for one in node["status"].get("conditions", []):
        key = _CONDITION_TAINTS.get((one.get("type", ""), one.get("status", "")))
        if key:
            wanted.append((key, "NoSchedule"))
        if key in {_NOT_READY, _UNREACHABLE}:
            wanted.append((key, "NoExecute"))
    if node["spec"].get("unschedulable"):
        wanted.append((_UNSCHEDULABLE, "NoSchedule"))
    return wanted


def _name(taint: Object) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def labelled(node: Object) -> Object:
    """The node with the old names of its os and arch labels, and the ttl annotation."""
    metadata = node["metadata"]
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    copied = {old: labels[name] for name, old in _COPIED_LABELS.items() if name in labels}
    changes = {"annotations": _TTL | annotations}
    if copied:
        changes["labels"] = labels | copied
    return node | {"metadata": metadata | changes}


def addressed(node: Object, pod_cidr: str) -> Object:
    """The node with a range of pod addresses, unless it has one."""
    if node["spec"].get("podCIDR") or not pod_cidr:
        return node
    return node | {"spec": {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} | node["spec"]}


def condition(node: Object, kind: str) -> Object | None:
    """The condition of that type, or None."""
    return next((one for one in node["status"].get("conditions", []) if one.get("type") == kind), None)
