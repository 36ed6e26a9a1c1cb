"""In which order the pods of a node end that goes down, and what is said of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.core.pods.ending import SHUTDOWN_REASON, Order
from agent.core.pods.info import PodInfo
from agent.core.shutdown import GracePeriod

_MESSAGE = "Pod was terminated in response to imminent node shutdown."


class Group(NamedTuple):
    """Pods that end together, and how long they may take."""

    seconds: int
    pods: list[PodInfo]


def groups(pods: Iterable[PodInfo], periods: Sequence[GracePeriod]) -> list[Group]:
    """The pods by priority, lowest first; a pod below all periods belongs to the first of them."""
    found = [Group(period.seconds, []) for period in periods]
    for pod in pods:
        place = sum(period.priority <= pod.priority for period in periods) - 1
        found[max(place, 0)].pods.append(pod)
    return [group for group in found if group.pods]


def parting(pod: PodInfo, seconds: int, now: datetime) -> Order:
    """How a pod of such a group ends."""
    return Order(SHUTDOWN_REASON, _MESSAGE, float(min(seconds, pod.grace_seconds)), now)
