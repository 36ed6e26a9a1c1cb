"""A node at one moment, as a person wants to see it: what the web page shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent.core.config import Config
from agent.core.model import Object
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


class Condition(NamedTuple):
    """A condition of the Node, with the signals that decide it."""

    kind: str
    status: str
    reason: str
    message: str
    is_bad: bool
    signals: Sequence[SignalRow]


class Share(NamedTuple):
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
    node: Object | None = None  # as the API server has it
    conditions: Sequence[Condition] = ()
    shares: Sequence[Share] = ()
    renewals: Sequence[Renewal] = ()
    renew_seconds: float = 10.0
    lease_seconds: float = 40.0
    lease_age_seconds: float | None = None
    missed: int = 0
    faults: Mapping[str, str] | None = None
    last_trouble: LoopFailure | None = None


def conditions(config: Config, status: Object, signals: Mapping[str, Observation]) -> list[Condition]:
    """The Node's conditions as they were told, with the host's signals as they are."""
    thresholds = (*config.eviction.hard, *config.eviction.soft)
    return [_condition(told, thresholds, signals) for told in status.get("conditions") or ()]


def shares(status: Object) -> list[Share]:
    """The Node's resources; those of which there is nothing are left out."""
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    found = []
    for name, text in sorted(capacity.items()):
        whole, rest = _number(str(text)), _number(str(allocatable.get(name, "0")))
        if whole > 0:
            found.append(Share(name, _amount(name, whole), _amount(name, rest), min(1.0, rest / whole)))
    return found


def human(size: float) -> str:
    """Bytes as people read them: `5.9 GiB`."""
    units = ["TiB", "GiB", "MiB", "KiB", "B"]
    while abs(size) >= 1024 and len(units) > 1:
        units.pop()
        size /= 1024
    return f"{size:.0f} {units[-1]}" if abs(size) >= 100 or units[-1] == "B" else f"{size:.1f} {units[-1]}"


def _condition(told: Object, thresholds: Sequence[Threshold], signals: Mapping[str, Observation]) -> Condition:
    kind, status = str(told.get("type", "")), str(told.get("status", ""))
    ours = [threshold for threshold in thresholds if threshold.condition == kind and threshold.signal in signals]
    rows = [_gauged(threshold.signal, signals[threshold.signal], threshold) for threshold in ours]
    shown = {threshold.signal for threshold in ours}
    rows += [
        _gauged(name, signals[name])
        for name in _ALWAYS_SHOWN
        if CONDITION_OF_SIGNAL[name] == kind and name in signals and name not in shown
    ]
    is_bad = status == "True" if kind in PRESSURE_TYPES or kind == "NetworkUnavailable" else status != "True"
    return Condition(kind, status, str(told.get("reason", "")), str(told.get("message", "")), is_bad, rows)


def _gauged(signal: str, seen: Observation, threshold: Threshold | None = None) -> SignalRow:
    least = threshold.value.of(seen.capacity) if threshold else 0
    return SignalRow(
        signal=signal,
        available=f"{_count(signal, seen.available)} of {_count(signal, seen.capacity)}",
        part=_part(seen.available, seen.capacity),
        threshold=_count(signal, least) if threshold else "",
        threshold_part=_part(least, seen.capacity),
        is_met=threshold is not None and threshold.is_met(seen, was_due=False),
    )


def _count(signal: str, amount: int) -> str:
    return f"{amount:,}" if signal.endswith("inodesFree") or signal.startswith("pid.") else human(amount)


def _part(amount: float, whole: float) -> float:
    return min(1.0, max(0.0, amount / whole)) if whole > 0 else 0.0


def _number(text: str) -> float:
    try:
        return Quantity.parse(text).nano / 1e9
    except QuantityError:
        return 0.0


def _amount(resource: str, number: float) -> str:
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return human(number)
    return f"{number:g}"
