"""Why and when a pod has to end."""

from datetime import datetime, timedelta
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods.parts import (
    bounded,
    deletion_grace_seconds,
    doomed_since,
    is_doomed,
    moment,
    wanted_grace_seconds,
)
from agent.core.pods.script import stop_seconds

SHUTDOWN_REASON = "Terminated"
_DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_KILLED = 137
_LEAST_SECONDS = 1.0  # as kubelet: no container is killed without a moment to end by itself


class Order(NamedTuple):
    """That a pod has to end, and why: for an eviction, a critical pod or a shutdown of the node."""

    reason: str
    message: str
    grace_seconds: float
    given_at: datetime
    disruption: str = ""  # what the condition DisruptionTarget says, if that is not the message


class Stop(NamedTuple):
    """When the containers of a pod are told to end, when they do, how, and what the pod is said to have died of."""

    told_at: datetime
    at: datetime
    exit_code: int
    reason: str = ""
    message: str = ""
    disruption: str = ""  # what the condition DisruptionTarget says; without it there is none


def stop(pod: Object, order: Order | None) -> Stop | None:
    """The first of the reasons for which the containers have to end, if there is one."""
    stops = [one for one in (_by_order(pod, order), _by_deletion(pod), _by_deadline(pod)) if one]
    return min(stops, key=lambda one: one.at, default=None)


def _by_order(pod: Object, order: Order | None) -> Stop | None:
    if order is None:
        return None
    given = _stopping(pod, order.given_at, order.grace_seconds)
    # Were they to exit with 0, kubelet v1.36 would tell that the pod has succeeded.
    disruption = order.disruption or order.message
    return given._replace(exit_code=_KILLED, reason=order.reason, message=order.message, disruption=disruption)


def _by_deletion(pod: Object) -> Stop | None:
    if not is_doomed(pod):
        return None
    return _stopping(pod, doomed_since(pod), deletion_grace_seconds(pod))


def _by_deadline(pod: Object) -> Stop | None:
    seconds, began = pod["spec"].get("activeDeadlineSeconds"), pod.get("status", {}).get("startTime")
    if seconds is None or not began:
        return None
    passed = _stopping(pod, moment(began) + timedelta(seconds=bounded(seconds)), wanted_grace_seconds(pod))
    return passed._replace(reason=_DEADLINE[0], message=_DEADLINE[1])


def _stopping(pod: Object, told_at: datetime, grace_seconds: float) -> Stop:
    """Containers end when they like, but not later than they may."""
    wanted, allowed = stop_seconds(pod), max(grace_seconds, _LEAST_SECONDS)
    if wanted > allowed:
        return Stop(told_at, told_at + timedelta(seconds=allowed), _KILLED)
    return Stop(told_at, told_at + timedelta(seconds=wanted), 0)
