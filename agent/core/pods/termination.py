"""How long the containers of a pod run, and why and when they end: by annotations, by plain commands, or as most do.

fake-kubelet.dev/run-for: 30s         all containers of the pod end after this time
fake-kubelet.dev/exit-code: "1"       … and with this code
fake-kubelet.dev/stop-after: 5s       how long they take to end after SIGTERM
run-for.fake-kubelet.dev/NAME, exit-code.fake-kubelet.dev/NAME: the same for one container
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from agent.core.model import Container, PodObject
from agent.core.pods.accessors import (
    INIT,
    MAIN,
    clamp_seconds,
    deletion_grace_seconds,
    deletion_requested_at,
    is_of_job,
    is_sidecar,
    is_terminating,
    termination_grace_seconds,
)
from agent.core.pods.command import CommandPlan
from agent.core.times import parse_seconds, parse_time

_DOMAIN = "fake-kubelet.dev"
_MOST_SECONDS = 10 * 365 * 24 * 3600.0  # longer than any pod lives
_LONGEST_VALUE = 64  # every container reads it again

SHUTDOWN_REASON = "Terminated"
_DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_KILLED = 137
_LEAST_SECONDS = 1.0  # as kubelet: a container always has a second between SIGTERM and SIGKILL


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How long a container runs, None for as long as its pod, and its exit code."""

    run_seconds: float | None
    exit_code: int


def run_plan(
    pod: PodObject, place: str, container: Container, *, job_seconds: float, command: CommandPlan | None = None
) -> RunPlan:
    """Return the plan of one container: an annotation comes before its command; an invalid annotation is ignored."""
    name = container["name"]
    default = None
    if place == INIT:
        default = None if is_sidecar(container) else 0.0
    elif place == MAIN and is_of_job(pod):
        default = job_seconds
    default_code = 0
    if command and command.run_seconds is not None:
        default, default_code = command.run_seconds, command.exit_code
    own = _seconds(_annotation(pod, f"run-for.{_DOMAIN}/{name}"))
    if own is None and place == MAIN:
        own = _seconds(_annotation(pod, f"{_DOMAIN}/run-for"))
    code = _code(_annotation(pod, f"exit-code.{_DOMAIN}/{name}"))
    if code is None and place == MAIN:
        code = _code(_annotation(pod, f"{_DOMAIN}/exit-code"))
    return RunPlan(default if own is None else own, default_code if code is None else code)


def stop_seconds(pod: PodObject) -> float:
    """Return how long the containers take to end after SIGTERM."""
    return _seconds(_annotation(pod, f"{_DOMAIN}/stop-after")) or 0.0


def check_seconds(text: str) -> str:
    """Return why an annotation is no duration; an empty text where it is one."""
    return f'"{text}" is no duration such as 90s, 10m or 1h' if _seconds(text) is None else ""


def check_code(text: str) -> str:
    """Return why an annotation is no exit code; an empty text where it is one."""
    return f'"{text}" is no exit code from 0 to 999' if _code(text) is None else ""


def _annotation(pod: PodObject, key: str) -> str:
    text: str = pod["metadata"].get("annotations", {}).get(key, "")
    return text


def _seconds(text: str) -> float | None:
    try:
        return min(max(0.0, parse_seconds(text)), _MOST_SECONDS) if 0 < len(text) <= _LONGEST_VALUE else None
    except ValueError:
        return None


def _code(text: str) -> int | None:
    return int(text) if len(text) <= 3 and text.isascii() and text.isdecimal() else None


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


def termination(pod: PodObject, request: KillRequest | None) -> Termination | None:
    """Return the earliest of the ends that await the pod: by the node, by a deletion, by its deadline."""
    ends = filter(None, (_by_request(pod, request), _by_deletion(pod), _by_deadline(pod)))
    return min(ends, key=lambda end: end.at, default=None)


def _by_request(pod: PodObject, request: KillRequest | None) -> Termination | None:
    if request is None:
        return None
    end = _end(pod, request.requested_at, request.grace_seconds)
    # With exit code 0, kubelet v1.36 would report that the pod has succeeded.
    disruption = request.disruption or request.message
    return end._replace(exit_code=_KILLED, reason=request.reason, message=request.message, disruption=disruption)


def _by_deletion(pod: PodObject) -> Termination | None:
    if not is_terminating(pod):
        return None
    return _end(pod, deletion_requested_at(pod), deletion_grace_seconds(pod))


def _by_deadline(pod: PodObject) -> Termination | None:
    seconds, began = pod["spec"].get("activeDeadlineSeconds"), pod.get("status", {}).get("startTime")
    if seconds is None or not began:
        return None
    deadline = parse_time(began) + timedelta(seconds=clamp_seconds(seconds))
    return _end(pod, deadline, termination_grace_seconds(pod))._replace(reason=_DEADLINE[0], message=_DEADLINE[1])


def _end(pod: PodObject, begins_at: datetime, grace_seconds: float) -> Termination:
    """Containers end by themselves within the grace period, or are killed after it."""
    needed, allowed = stop_seconds(pod), max(grace_seconds, _LEAST_SECONDS)
    if needed > allowed:
        return Termination(begins_at, begins_at + timedelta(seconds=allowed), _KILLED)
    return Termination(begins_at, begins_at + timedelta(seconds=needed), 0)
