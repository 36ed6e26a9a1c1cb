"""Events: those about the node, the object that is sent for any event, and the correlation of events that repeat."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from agent.core.model import HostSnapshot, NodeStatus, Object
from agent.core.nodestatus import PRESSURE_TYPES, find_condition
from agent.core.times import timestamp

K = TypeVar("K")
V = TypeVar("V")

EVENT_NAMESPACE = "default"  # of events about the Node

# condition type → reason when it becomes True, reason when it becomes False
_REASONS = {
    "MemoryPressure": ("NodeHasInsufficientMemory", "NodeHasSufficientMemory"),
    "DiskPressure": ("NodeHasDiskPressure", "NodeHasNoDiskPressure"),
    "PIDPressure": ("NodeHasInsufficientPID", "NodeHasSufficientPID"),
    "Ready": ("NodeReady", "NodeNotReady"),
}

_SPAM_BURST, _SPAM_REFILL_SECONDS = 25, 300.0
_MOST_SIMILAR, _SIMILAR_SECONDS = 10, 600.0
# client-go remembers 4096 events, of whatever objects; four of them are about one pod that comes and goes.
_MOST_OBJECTS, _MOST_EVENTS = 1024, 256


class EventLike(Protocol):
    """The fields of an event that differ from event to event."""

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


def status_events(node_name: str, before: NodeStatus, after: NodeStatus) -> list[NodeEvent]:
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


def start_events(node_name: str, before: NodeStatus, host: HostSnapshot) -> list[NodeEvent]:
    """The events of a start: the host has cgroup v1, and the Node was last seen with another boot ID."""
    events = [_CGROUP_V1] if host.cgroup_version == 1 else []
    if before.get("nodeInfo", {}).get("bootID", "") not in {"", host.boot_id}:
        message = f"Node {node_name} has been rebooted, boot id: {host.boot_id}"
        events.append(NodeEvent("Rebooted", message, "Warning"))
    return events


def event_object(
    node_name: str, event: EventLike, now: datetime, number: int, *, about: Object | None = None
) -> Object:
    """Return an event of this node as kubelet v1.36 writes it; one about the Node itself is without its UID.

    `number` distinguishes the events of one microsecond.
    """
    at, about = timestamp(now), about or {"apiVersion": "v1", "kind": "Node", "name": node_name}
    nanos = int(now.timestamp()) * 10**9 + now.microsecond * 1000 + number % 1000
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name']}.{nanos:x}", "namespace": about.get("namespace", EVENT_NAMESPACE)},
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


class Correlated(NamedTuple):
    """What to send: a new event, or a patch of the event that was sent before."""

    event: Object
    patch: Object | None


class _Sent(NamedTuple):
    """What is needed to count an event once more."""

    name: str
    first_timestamp: str
    times: int


class _Bucket(NamedTuple):
    """How many events may still be sent, as of a moment."""

    tokens: float
    at_seconds: float


class _Similar(NamedTuple):
    """The different messages of one reason, and when the last of them came."""

    messages: tuple[int, ...]  # their hashes: others may have written a megabyte of each
    last_seconds: float


@dataclass(slots=True)
class _Record:
    """The events about one object."""

    buckets: dict[str, _Bucket] = field(default_factory=dict)  # by type
    similar: dict[int, _Similar] = field(default_factory=dict)  # by the hash of type and reason
    sent: dict[tuple[int, ...], _Sent] = field(default_factory=dict)  # by hashes, too


class Correlator:
    """Counts events that repeat and drops too many, as client-go's EventCorrelator does; the caller passes the time."""

    def __init__(self) -> None:
        self._objects: dict[str, _Record] = {}

    def correlate(self, event: Object, now_seconds: float) -> Correlated | None:
        """Return the event or patch to send; None where this object had more than its share."""
        about = event["involvedObject"]
        identity = about.get("uid") or about["name"]  # a node's own events have its name for a UID
        record = self._objects.get(identity) or _Record()
        _store(self._objects, identity, record, most=_MOST_OBJECTS)
        event, key = _aggregated(record, event, now_seconds)
        patch = None
        if before := record.sent.get(key):
            patch = {"count": before.times + 1, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}
            metadata = {**event["metadata"], "name": before.name}
            event = {**event, "metadata": metadata, "firstTimestamp": before.first_timestamp, **patch}
        sent = _Sent(event["metadata"]["name"], event["firstTimestamp"], event["count"])
        _store(record.sent, key, sent, most=_MOST_EVENTS)
        return None if _is_spam(record, event["type"], now_seconds) else Correlated(event, patch)

    def forget(self, uid: str) -> None:
        """Drop what is stored about an object that is gone."""
        self._objects.pop(uid, None)


def _aggregated(record: _Record, event: Object, now_seconds: float) -> tuple[Object, tuple[int, ...]]:
    """From the tenth different message within ten minutes on, the messages of a reason share one event."""
    group, message = hash((event["type"], event["reason"])), hash(event["message"])
    similar = record.similar.get(group)
    recent = similar.messages if similar and now_seconds - similar.last_seconds <= _SIMILAR_SECONDS else ()
    messages = recent if message in recent else (*recent, message)
    _store(record.similar, group, _Similar(messages[: _MOST_SIMILAR - 1], now_seconds), most=_MOST_EVENTS)
    if len(messages) < _MOST_SIMILAR:
        return event, (group, message, hash(event["involvedObject"].get("fieldPath", "")))
    return {**event, "message": f"(combined from similar events): {event['message']}"}, (group,)


def _is_spam(record: _Record, kind: str, now_seconds: float) -> bool:
    tokens, at_seconds = record.buckets.get(kind) or _Bucket(_SPAM_BURST, now_seconds)
    tokens = min(_SPAM_BURST, tokens + (now_seconds - at_seconds) / _SPAM_REFILL_SECONDS)
    is_spam = tokens < 1
    record.buckets[kind] = _Bucket(tokens if is_spam else tokens - 1, now_seconds)
    return is_spam


def _store(entries: dict[K, V], key: K, value: V, *, most: int) -> None:
    """Store a value as the newest, and drop the oldest where there are too many.

    An OrderedDict would take half a KiB more.
    """
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > most:
        del entries[next(iter(entries))]
