"""The smallest strategic-merge patch from one Node to another, and from one pod status to another."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.model import Condition, NodeObject, Object, PodObject, PodStatus
from agent.core.quantity import same_amount

_QUANTITIES = ("capacity", "allocatable")
_BY_ADDRESS = ("podIPs", "hostIPs")  # lists that the API merges by address
_REPLACE = {"$patch": "replace"}


def node_patch(observed: NodeObject, desired: NodeObject) -> Object:
    """Return the patch by which `observed` becomes `desired`; `spec` is never part of it."""
    old, new = observed.get("status", {}), desired.get("status", {})
    parts = {"metadata": _metadata(observed, desired), "status": _status(old, new)}
    return {name: part for name, part in parts.items() if part}


def is_changed(patch: Object) -> bool:
    """Return whether a patch carries more than new heartbeat times."""
    status = patch.get("status", {})
    conditions = status.get("conditions", [])
    return (
        "metadata" in patch
        or any(name not in {"conditions", "$setElementOrder/conditions"} for name in status)
        or any(set(condition) - {"type", "lastHeartbeatTime"} for condition in conditions)
    )


def _metadata(observed: NodeObject, desired: NodeObject) -> Object:
    old: Mapping[str, Any] = observed.get("metadata", {})
    new: Mapping[str, Any] = desired.get("metadata", {})
    parts = {name: map_diff(old.get(name) or {}, new.get(name) or {}) for name in ("labels", "annotations")}
    return {name: part for name, part in parts.items() if part}


def _status(observed: Mapping[str, Any], desired: Mapping[str, Any]) -> Object:
    patch: Object = {}
    for name in observed.keys() | desired.keys():
        old, new = observed.get(name), desired.get(name)
        if _same(name, old, new):
            continue
        if name == "conditions":
            patch |= conditions_diff(old or [], new or [])
        elif name == "addresses" and old:
            # The API merges addresses by type, which cannot hold two InternalIPs: replace the list.
            patch[name] = [*(new or []), _REPLACE]
        else:
            patch[name] = map_diff(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
    return patch


def conditions_diff(observed: Sequence[Condition], desired: Sequence[Condition]) -> Object:
    """Changed fields only, keyed by type; the order list is what client-go adds."""
    old = {condition["type"]: condition for condition in observed}
    changes = [
        {**changed, "type": new["type"]} for new in desired if (changed := map_diff(old.get(new["type"], {}), new))
    ]
    return {"$setElementOrder/conditions": [{"type": new["type"]} for new in desired], "conditions": changes}


def map_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> Object:
    """Return what must be merged into one map so that it becomes the other."""
    changes = {name: _change(old.get(name), value) for name, value in new.items() if old.get(name) != value}
    return changes | {name: None for name in old if name not in new}


def _change(old: Any, new: Any) -> Any:
    return map_diff(old, new) if isinstance(old, dict) and isinstance(new, dict) else new


def _same(name: str, old: Any, new: Any) -> bool:
    """Equal as the API sees it: absent is empty, and quantities compare by value."""
    if not old and not new:
        return True
    if name in _QUANTITIES and old and new:
        return old.keys() == new.keys() and all(same_amount(old[key], new[key]) for key in old)
    return bool(old == new)


def status_patch(pod: PodObject, status: PodStatus) -> Object | None:
    """Return the smallest patch that gives this pod, and no other with its name, the status; None if it has it."""
    old = pod.get("status", {})
    changes: Object = {}
    for name in sorted(old.keys() | status.keys()):
        before, after = old.get(name), status.get(name)
        if before != after and (before or after or name == "resources"):  # kubelet writes no resources as an empty map
            changes |= _changed(name, before, after)
    return {"metadata": {"uid": pod["metadata"]["uid"]}, "status": changes} if changes else None


def _changed(name: str, before: Any, after: Any) -> Object:
    if name == "conditions" and before and after:
        return _conditions(before, after)
    if name in _BY_ADDRESS and before and after:
        return {name: [*after, _REPLACE]}
    if isinstance(before, dict) and isinstance(after, dict):
        return {name: map_diff(before, after)}
    return {name: after}


def _conditions(before: Sequence[Condition], after: Sequence[Condition]) -> Object:
    kinds = [condition["type"] for condition in after]
    if {condition["type"] for condition in before} - set(kinds):
        return {"conditions": [*after, _REPLACE]}
    diff = conditions_diff(before, after)
    return diff if diff["conditions"] or kinds != [condition["type"] for condition in before] else {}
