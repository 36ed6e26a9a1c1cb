"""Events about the node: the difference between two statuses, and the object that is sent for any event of ours."""

from datetime import datetime
from typing import NamedTuple, Protocol

from agent.core.model import HostSnapshot, Object
from agent.core.nodestatus import PRESSURE_TYPES, find_condition
from agent.core.times import timestamp

NAMESPACE = "default"

# condition type → reason when it becomes True, reason when it becomes False
_REASONS = {
    "MemoryPressure": ("NodeHasInsufficientMemory", "NodeHasSufficientMemory"),
    "DiskPressure": ("NodeHasDiskPressure", "NodeHasNoDiskPressure"),
    "PIDPressure": ("NodeHasInsufficientPID", "NodeHasSufficientPID"),
    "Ready": ("NodeReady", "NodeNotReady"),
}


class EventLike(Protocol):
    """What an event tells."""

    @property
    def reason(self) -> str:
        """One word for machines."""

    @property
    def message(self) -> str:
        """A sentence for people."""

    @property
    def type(self) -> str:
        """Normal or Warning."""


class NodeEvent(NamedTuple):
    """Something that happened to the node."""

    reason: str
    message: str
    type: str = "Normal"


STARTING = NodeEvent("Starting", "Starting kubelet.")
# kubelet v1.36: cm.CgroupV1DeprecatedWarning
_CGROUP_V1 = NodeEvent(
    "CgroupV1",
    "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to "
    "cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1",
    "Warning",
)
SHUTDOWN_DETECTED = NodeEvent("Shutdown", "Shutdown manager detected shutdown event")
SHUTDOWN_CANCELLED = NodeEvent("Shutdown", "Shutdown manager detected shutdown cancellation")


def status_events(node_name: str, before: Object, after: Object) -> list[NodeEvent]:
    """One event for each condition that flipped; Ready says nothing when it first appears."""
    events = []
    for kind, reasons in _REASONS.items():
        old, new = find_condition(before, kind), find_condition(after, kind)
        if new is None or (old is None and kind not in PRESSURE_TYPES) or (old and old["status"] == new["status"]):
            continue
        reason = reasons[0] if new["status"] == "True" else reasons[1]
        events.append(NodeEvent(reason, f"Node {node_name} status is now: {reason}"))
    return events


def schedulable_events(node_name: str, *, was_cordoned: bool, is_cordoned: bool) -> list[NodeEvent]:
    """One event when somebody cordons the node or lets pods come again."""
    if was_cordoned == is_cordoned:
        return []
    reason = "NodeNotSchedulable" if is_cordoned else "NodeSchedulable"
    return [NodeEvent(reason, f"Node {node_name} status is now: {reason}")]


def start_events(node_name: str, before: Object, host: HostSnapshot) -> list[NodeEvent]:
    """What is told once per start: that the cgroups are old, and that the Node was last seen with another boot ID."""
    events = [_CGROUP_V1] if host.cgroup_version == 1 else []
    if before.get("nodeInfo", {}).get("bootID", "") not in {"", host.boot_id}:
        words = f"Node {node_name} has been rebooted, boot id: {host.boot_id}"
        events.append(NodeEvent("Rebooted", words, "Warning"))
    return events


def event_object(
    node_name: str, event: EventLike, now: datetime, number: int, *, about: Object | None = None
) -> Object:
    """An event of this node as kubelet v1.36 writes it; one about the Node itself is told without its UID.

    `number` tells apart those of one microsecond.
    """
    at, about = timestamp(now), about or {"apiVersion": "v1", "kind": "Node", "name": node_name}
    nanos = int(now.timestamp()) * 10**9 + now.microsecond * 1000 + number % 1000
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name']}.{nanos:x}", "namespace": about.get("namespace", NAMESPACE)},
        "involvedObject": about,
        "reason": event.reason,
        "message": event.message,
        "type": event.type,
        "source": {"component": "kubelet", "host": node_name},
        "reportingComponent": "kubelet",
        "reportingInstance": node_name,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "eventTime": None,
    }
