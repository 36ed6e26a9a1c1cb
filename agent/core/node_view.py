"""A node at one moment, as a person wants to see it: what the web page shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent.core.config import NodeConfig
from agent.core.model import Condition, NodeObject, NodeStatus
from agent.core.nodestatus import PRESSURE_TYPES
from agent.core.pressure import CONDITION_OF_SIGNAL, Observation, Threshold
from agent.core.quantity import Quantity, QuantityError

_ALWAYS_SHOWN = ("memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available")


class Renewal(NamedTuple):
    """One renewal of the lease: so long ago, and ok, late or failed."""

    age_seconds: float
    verdict: str


class LoopFailure(NamedTuple):
    """Something that went wrong in a loop, so long ago."""

    age_seconds: float
    loop: str
    reason: str


class Setting(NamedTuple):
    """One effective setting that is no default, and where it came from."""

    name: str
    value: str
    origin: str


class SignalRow(NamedTuple):
    """What is left of a resource, against the least that is no pressure; parts are of the whole."""

    signal: str
    available: str
    part: float
    threshold: str  # empty where none is set
    threshold_part: float
    is_met: bool


class ConditionRow(NamedTuple):
    """A condition of the Node, with the signals that decide it."""

    kind: str
    status: str
    reason: str
    message: str
    is_bad: bool
    signals: Sequence[SignalRow]


class ResourceRow(NamedTuple):
    """How much of a resource is there, and how much of it pods may have."""

    resource: str
    capacity: str
    allocatable: str
    part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Everything that the page shows; the default is a node that has not begun."""

    node_name: str
    version: str = ""
    node: NodeObject | None = None  # as the API server has it
    conditions: Sequence[ConditionRow] = ()
    resources: Sequence[ResourceRow] = ()
    renewals: Sequence[Renewal] = ()
    renew_seconds: float = 10.0
    lease_seconds: float = 40.0
    lease_age_seconds: float | None = None
    missed: int = 0
    faults: Mapping[str, str] | None = None
    last_trouble: LoopFailure | None = None


def condition_rows(config: NodeConfig, status: NodeStatus, signals: Mapping[str, Observation]) -> list[ConditionRow]:
    """Return the Node's conditions as they were reported, with the host's signals as they are."""
    thresholds = (*config.eviction.hard, *config.eviction.soft)
    return [_condition_row(condition, thresholds, signals) for condition in status.get("conditions") or ()]


def resource_rows(status: NodeStatus) -> list[ResourceRow]:
    """Return the Node's resources; those of which there is nothing are left out."""
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    rows = []
    for name, text in sorted(capacity.items()):
        whole, rest = _number(str(text)), _number(str(allocatable.get(name, "0")))
        if whole > 0:
            rows.append(ResourceRow(name, _amount(name, whole), _amount(name, rest), min(1.0, rest / whole)))
    return rows


def format_bytes(size: float) -> str:
    """Bytes as people read them: `5.9 GiB`."""
    units = ["TiB", "GiB", "MiB", "KiB", "B"]
    while abs(size) >= 1024 and len(units) > 1:
        units.pop()
        size /= 1024
    return f"{size:.0f} {units[-1]}" if abs(size) >= 100 or units[-1] == "B" else f"{size:.1f} {units[-1]}"


def _condition_row(
    condition: Condition, thresholds: Sequence[Threshold], signals: Mapping[str, Observation]
) -> ConditionRow:
    kind, status = condition["type"], condition["status"]
    ours = [threshold for threshold in thresholds if threshold.condition == kind and threshold.signal in signals]
    rows = [_signal_row(threshold.signal, signals[threshold.signal], threshold) for threshold in ours]
    shown = {threshold.signal for threshold in ours}
    rows += [
        _signal_row(name, signals[name])
        for name in _ALWAYS_SHOWN
        if CONDITION_OF_SIGNAL[name] == kind and name in signals and name not in shown
    ]
    is_bad = status == "True" if kind in PRESSURE_TYPES or kind == "NetworkUnavailable" else status != "True"
    return ConditionRow(kind, status, str(condition.get("reason", "")), str(condition.get("message", "")), is_bad, rows)


def _signal_row(signal: str, observation: Observation, threshold: Threshold | None = None) -> SignalRow:
    least = threshold.value.of(observation.capacity) if threshold else 0
    return SignalRow(
        signal=signal,
        available=f"{format_signal(signal, observation.available)} of {format_signal(signal, observation.capacity)}",
        part=_part(observation.available, observation.capacity),
        threshold=format_signal(signal, least) if threshold else "",
        threshold_part=_part(least, observation.capacity),
        is_met=threshold is not None and threshold.is_met(observation, was_due=False),
    )


def format_signal(signal: str, amount: int) -> str:
    """Return an amount of an eviction signal for people: a number of bytes with its unit, or a count."""
    return f"{amount:,}" if signal.endswith("inodesFree") or signal.startswith("pid.") else format_bytes(amount)


def _part(amount: float, whole: float) -> float:
    return min(1.0, max(0.0, amount / whole)) if whole > 0 else 0.0


def _number(text: str) -> float:
    try:
        return Quantity.parse(text).nano / 1e9
    except QuantityError:
        return 0.0


def _amount(resource: str, number: float) -> str:
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return format_bytes(number)
    return f"{number:g}"
