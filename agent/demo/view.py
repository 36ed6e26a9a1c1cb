"""What the demo shows: from the objects in the cluster and the host's signals to lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.core.model import LeaseObject, NodeObject, NodeStatus, Object
from agent.core.nodestatus import PRESSURE_TYPES, find_condition, is_ready
from agent.core.pressure import Observation, Threshold
from agent.core.quantity import Quantity
from agent.core.times import parse_time

_EVENTS_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything the view depends on, at one moment."""

    node: NodeObject | None
    lease: LeaseObject | None
    events: Sequence[Object]
    signals: Mapping[str, Observation]
    thresholds: Sequence[Threshold]
    now: datetime

    @property
    def ready(self) -> bool:
        """Whether the cluster holds the node for ready."""
        return self.node is not None and is_ready(self.node.get("status", {}))


def sections(scene: Scene) -> Iterator[tuple[str, list[list[str]]]]:
    """The parts of the view: a title and rows of cells each."""
    if scene.node is None:
        yield "Node", [["waiting for the node to register itself"]]
        return
    status = scene.node["status"]
    yield "Node", [[scene.node["metadata"]["name"], status["nodeInfo"]["kubeletVersion"], _addresses(status)]]
    yield "Conditions", [_condition(scene, kind) for kind in ("Ready", *PRESSURE_TYPES)]
    yield "Resources", [["", "capacity", "allocatable"], *_resources(status)]
    yield "Heartbeat", [["lease", _lease(scene)], ["status", _report(scene, status)]]
    yield "Events", [_event(event, scene.now) for event in _newest(scene.events)] or [["none yet"]]


def summary(scene: Scene) -> str:
    """The node in one line, for a log."""
    if scene.node is None:
        return "waiting for the node to register itself"
    status = scene.node["status"]
    states = " ".join(f"{kind}={_state(status, kind)}" for kind in ("Ready", *PRESSURE_TYPES))
    return f"node {scene.node['metadata']['name']} {states} | lease {_lease(scene)} | status {_report(scene, status)}"


def _condition(scene: Scene, kind: str) -> list[str]:
    status: NodeStatus = scene.node["status"] if scene.node else {}
    condition = find_condition(status, kind)
    message = condition.get("message", "") if condition else ""
    detail = message if kind == "Ready" else _signals(scene, kind)
    return [kind, _state(status, kind), detail]


def _state(status: NodeStatus, kind: str) -> str:
    condition = find_condition(status, kind)
    return condition["status"] if condition else "Unknown"


def _signals(scene: Scene, kind: str) -> str:
    """Each signal behind a condition, with the value below which it is pressure."""
    told = []
    for threshold in scene.thresholds:
        signal = scene.signals.get(threshold.signal)
        if threshold.condition == kind and signal and threshold.signal.startswith(("memory.", "nodefs.", "pid.")):
            of = _amount(threshold.signal, threshold.value.of(signal.capacity))
            told.append(f"{threshold.signal} {_amount(threshold.signal, signal.available)} (pressure below {of})")
    return ", ".join(told) or "no threshold set"


def _amount(signal: str, amount: int) -> str:
    if signal.startswith("pid.") or signal.endswith(".inodesFree"):
        return str(amount)
    return f"{amount / 2**30:.1f}Gi" if amount >= 2**30 else f"{amount / 2**20:.0f}Mi"


def _resources(status: NodeStatus) -> list[list[str]]:
    allocatable = status.get("allocatable", {})
    rows = ((name, str(text), str(allocatable.get(name, "-"))) for name, text in status.get("capacity", {}).items())
    return [list(row) for row in rows if Quantity.parse(row[1]).nano]


def _lease(scene: Scene) -> str:
    if scene.lease is None:
        return "none yet"
    spec = scene.lease["spec"]
    age = _seconds_since(spec["renewTime"], scene.now)
    return f"renewed {age:.1f}s ago by {spec['holderIdentity']}, good for {spec['leaseDurationSeconds']}s"


def _report(scene: Scene, status: NodeStatus) -> str:
    ready = find_condition(status, "Ready")
    return f"last reported {_seconds_since(ready['lastHeartbeatTime'], scene.now):.0f}s ago" if ready else "none yet"


def _addresses(status: NodeStatus) -> str:
    return " ".join(entry["address"] for entry in status.get("addresses", []) if entry["type"] == "InternalIP")


def _newest(events: Sequence[Object]) -> Sequence[Object]:
    return sorted(events, key=lambda event: event["metadata"]["creationTimestamp"])[-_EVENTS_SHOWN:]


def _event(event: Object, now: datetime) -> list[str]:
    age = _seconds_since(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"], now)
    return [f"{age:.0f}s", event["type"], event["reason"], event["message"]]


def _seconds_since(timestamp: str, now: datetime) -> float:
    return max(0.0, (now - parse_time(timestamp)).total_seconds())
