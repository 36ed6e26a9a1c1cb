"""The strategic-merge patch from one pod status to another."""

from typing import Any

from agent.core.model import Object
from agent.core.patch import conditions_diff, map_diff

_BY_ADDRESS = ("podIPs", "hostIPs")  # lists that the API merges by address
_REPLACE = {"$patch": "replace"}


def status_patch(pod: Object, status: Object) -> Object | None:
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


def _conditions(before: list[Object], after: list[Object]) -> Object:
    kinds = [condition["type"] for condition in after]
    if {condition["type"] for condition in before} - set(kinds):
        return {"conditions": [*after, _REPLACE]}
    diff = conditions_diff(before, after)
    return diff if diff["conditions"] or kinds != [condition["type"] for condition in before] else {}
