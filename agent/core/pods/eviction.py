"""Which pod has to go when the node runs short of something, and what is said of it."""

from collections.abc import Iterable, Mapping

from agent.core.events import NodeEvent
from agent.core.eviction import Observation, Threshold
from agent.core.pods.info import PodInfo
from agent.core.quantity import Quantity

_EVICTED = "Evicted"
_IMMEDIATE_SECONDS = 1.0
# kubelet v1.36: eviction.signalToResource
_RESOURCES = {
    "memory.available": "memory",
    "allocatableMemory.available": "memory",
    "nodefs.available": "ephemeral-storage",
    "nodefs.inodesFree": "inodes",
    "imagefs.available": "ephemeral-storage",
    "imagefs.inodesFree": "inodes",
    "containerfs.available": "ephemeral-storage",
    "containerfs.inodesFree": "inodes",
    "pid.available": "pids",
}


def most_urgent(thresholds: Iterable[Threshold]) -> Threshold | None:
    """The shortage that is met first: memory, then whatever else."""
    return min(thresholds, key=lambda one: (resource_of(one) != "memory", one.signal), default=None)


def resource_of(threshold: Threshold) -> str:
    """What the node is short of."""
    return _RESOURCES[threshold.signal]


def attempt(resource: str) -> NodeEvent:
    """What is said of the node."""
    return NodeEvent("EvictionThresholdMet", f"Attempting to reclaim {resource}", "Warning")


def ranked(pods: Iterable[PodInfo], threshold: Threshold) -> list[PodInfo]:
    """The pods that may go, first the one that goes first.

    Kubelet asks first who uses more than it requested. Nothing is run here, so nobody does: what counts is the
    priority, and then who requested least.
    """
    resource = resource_of(threshold)
    return sorted(
        (pod for pod in pods if not pod.is_critical),
        key=lambda pod: (pod.priority, pod.request.amounts.get(resource, 0)),
    )


def grace_seconds(pod: PodInfo, threshold: Threshold, most_seconds: int) -> float:
    """How long a pod may take: no time to lose below a hard threshold."""
    if not threshold.grace_seconds:
        return _IMMEDIATE_SECONDS
    return float(min(most_seconds, pod.grace_seconds))


def verdict(threshold: Threshold, signals: Mapping[str, Observation]) -> tuple[str, str]:
    """The reason and the message that an evicted pod is given."""
    resource = resource_of(threshold)
    message = f"The node was low on resource: {resource}. "
    if found := signals.get(threshold.signal):
        least = threshold.value.of(found.capacity)
        told = Quantity.of_bytes(least) if threshold.value.percent is not None else _amount(resource, least)
        message += f"Threshold quantity: {told}, available: {_amount(resource, found.available)}. "
    return _EVICTED, message


def _amount(resource: str, amount: int) -> Quantity:
    return Quantity.of_count(amount) if resource in {"inodes", "pids"} else Quantity.of_bytes(amount)
