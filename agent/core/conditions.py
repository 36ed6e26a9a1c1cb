"""The four conditions a kubelet owns."""

from collections.abc import Sequence

from agent.core.capacity import missing_capacity
from agent.core.facts import Facts
from agent.core.model import Object
from agent.core.times import timestamp

# type → (reason, message) while True, (reason, message) while False
_PRESSURE = {
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ),
}
_READY = ("KubeletReady", "kubelet is posting ready status")
PRESSURE_TYPES = tuple(_PRESSURE)


def conditions(facts: Facts) -> Object:
    """Ours in place, those of others untouched; missing ones appended, Ready last."""
    ours = {kind: _pressure(facts, kind) for kind in _PRESSURE} | {"Ready": _ready(facts)}
    observed = facts.observed.get("conditions", [])
    kept = [ours.pop(condition["type"], condition) for condition in observed]
    return {"conditions": [*kept, *ours.values()]}


def find_condition(status: Object, kind: str) -> Object | None:
    """The condition of one type, if the status has it."""
    return next((condition for condition in status.get("conditions") or () if condition["type"] == kind), None)


def is_ready(status: Object) -> bool:
    """Whether the status says Ready=True."""
    ready = find_condition(status, "Ready")
    return ready is not None and ready["status"] == "True"


def _pressure(facts: Facts, kind: str) -> Object:
    """Reason and message are written only when the status flips, as kubelet does."""
    holds, now = kind in facts.pressure, timestamp(facts.now)
    old = find_condition(facts.observed, kind)
    if old and old["status"] == str(holds):
        return {**old, "lastHeartbeatTime": now}
    return _condition(kind, holds, now, now, _PRESSURE[kind][0 if holds else 1])


def _ready(facts: Facts) -> Object:
    problems = list(facts.problems)
    if missing := missing_capacity(facts):
        problems.append(f"missing node capacity for resources: {', '.join(missing)}")
    holds, now = not problems, timestamp(facts.now)
    old = find_condition(facts.observed, "Ready")
    since = old["lastTransitionTime"] if old and old["status"] == str(holds) else now
    words = ("KubeletNotReady", _aggregated(problems)) if problems else _READY
    return _condition("Ready", holds, now, since, words)


def _condition(kind: str, holds: bool, now: str, since: str, words: tuple[str, str]) -> Object:
    return {
        "type": kind,
        "status": str(holds),
        "lastHeartbeatTime": now,
        "lastTransitionTime": since,
        "reason": words[0],
        "message": words[1],
    }


def _aggregated(problems: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
