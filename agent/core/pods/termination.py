"""Why and when the containers of a pod end."""

from datetime import datetime, timedelta
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods.accessors import (
    clamp_seconds,
    deletion_grace_seconds,
    deletion_requested_at,
    is_terminating,
    termination_grace_seconds,
)
from agent.core.pods.run_plan import stop_seconds
from agent.core.times import parse_time

SHUTDOWN_REASON = "Terminated"
_DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_KILLED = 137
_LEAST_SECONDS = 1.0  # as kubelet: a container always has a second between SIGTERM and SIGKILL


class KillRequest(NamedTuple):
    """The node's own decision to end a pod: an eviction, a preemption or a shutdown of the node."""

    reason: str
    message: str
    grace_seconds: float
    requested_at: datetime
    disruption: str = ""  # the message of the condition DisruptionTarget, if it is another one


class Termination(NamedTuple):
    """When the containers get SIGTERM, when and how they end, and the reason that the pod's status gives."""

    begins_at: datetime
    at: datetime
    exit_code: int
    reason: str = ""
    message: str = ""
    disruption: str = ""  # the message of the condition DisruptionTarget; the pod gets none if this is empty


def termination(pod: Object, request: KillRequest | None) -> Termination | None:
    """Return the earliest of the ends that await the pod: by the node, by a deletion, by its deadline."""
    ends = filter(None, (_by_request(pod, request), _by_deletion(pod), _by_deadline(pod)))
    return min(ends, key=lambda end: end.at, default=None)


def _by_request(pod: Object, request: KillRequest | None) -> Termination | None:
    if request is None:
        return None
    end = _end(pod, request.requested_at, request.grace_seconds)
    # With exit code 0, kubelet v1.36 would report that the pod has succeeded.
    disruption = request.disruption or request.message
    return end._replace(exit_code=_KILLED, reason=request.reason, message=request.message, disruption=disruption)


def _by_deletion(pod: Object) -> Termination | None:
    if not is_terminating(pod):
        return None
    return _end(pod, deletion_requested_at(pod), deletion_grace_seconds(pod))


def _by_deadline(pod: Object) -> Termination | None:
    seconds, began = pod["spec"].get("activeDeadlineSeconds"), pod.get("status", {}).get("startTime")
    if seconds is None or not began:
        return None
    deadline = parse_time(began) + timedelta(seconds=clamp_seconds(seconds))
    return _end(pod, deadline, termination_grace_seconds(pod))._replace(reason=_DEADLINE[0], message=_DEADLINE[1])


def _end(pod: Object, begins_at: datetime, grace_seconds: float) -> Termination:
    """Containers end by themselves within the grace period, or are killed after it."""
    needed, allowed = stop_seconds(pod), max(grace_seconds, _LEAST_SECONDS)
    if needed > allowed:
        return Termination(begins_at, begins_at + timedelta(seconds=allowed), _KILLED)
    return Termination(begins_at, begins_at + timedelta(seconds=needed), 0)
