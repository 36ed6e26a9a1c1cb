"""In which order the node kills its pods when it shuts down."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.core.pods.info import PodInfo
from agent.core.pods.termination import SHUTDOWN_REASON, KillRequest
from agent.core.shutdown import GracePeriod

_MESSAGE = "Pod was terminated in response to imminent node shutdown."


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
