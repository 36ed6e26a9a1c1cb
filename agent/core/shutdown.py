"""The shutdown of a node: how long its pods have, and in which order it kills them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.core.pods.info import PodInfo
from agent.core.pods.termination import SHUTDOWN_REASON, KillRequest

SHUTTING_DOWN = "node is shutting down"

_ANY_POD = 0  # the priority of a pod without a priority class
_CRITICAL_POD = 2_000_000_000  # system-cluster-critical
_MESSAGE = "Pod was terminated in response to imminent node shutdown."


class GracePeriod(NamedTuple):
    """How long pods from a priority on have to end; those of a lower one have ended before."""

    priority: int
    seconds: int


def grace_periods(
    whole_seconds: float, critical_seconds: float, by_priority: Iterable[GracePeriod] = ()
) -> tuple[GracePeriod, ...]:
    """Return the periods, lowest priority first; a list by priority replaces the other two settings."""
    if listed := sorted(by_priority):
        return tuple(listed)
    if whole_seconds <= 0:
        return ()
    # kubelet v1.36: nodeshutdown.migrateConfig
    return (
        GracePeriod(_ANY_POD, int(whole_seconds - critical_seconds)),
        GracePeriod(_CRITICAL_POD, int(critical_seconds)),
    )


def requested_seconds(periods: Sequence[GracePeriod]) -> int:
    """Return how long a shutdown of the machine has to be delayed."""
    return sum(period.seconds for period in periods)


class PriorityGroup(NamedTuple):
    """Pods that are killed together, and how long they may take."""

    seconds: int
    pods: list[PodInfo]


def priority_groups(pods: Iterable[PodInfo], periods: Sequence[GracePeriod]) -> list[PriorityGroup]:
    """Group pods by priority, lowest first; a pod below all periods belongs to the first of them."""
    groups = [PriorityGroup(period.seconds, []) for period in periods]
    for pod in pods:
        index = sum(period.priority <= pod.priority for period in periods) - 1
        groups[max(index, 0)].pods.append(pod)
    return [group for group in groups if group.pods]


def kill_for_shutdown(pod: PodInfo, seconds: int, now: datetime) -> KillRequest:
    """Return the request to kill a pod of such a group."""
    return KillRequest(SHUTDOWN_REASON, _MESSAGE, float(min(seconds, pod.grace_seconds)), now)
