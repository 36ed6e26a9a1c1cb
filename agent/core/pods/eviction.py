"""Which pod the node evicts under pressure, and what its status and events say."""

from collections.abc import Iterable, Mapping

from agent.core.events import NodeEvent
from agent.core.pods.info import PodInfo
from agent.core.pressure import Observation, Threshold
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
    """Return the threshold to act on first: memory, then any other."""
    return min(thresholds, key=lambda entry: (resource_of(entry) != "memory", entry.signal), default=None)


def resource_of(threshold: Threshold) -> str:
    """Return the resource that the node is short of."""
    return _RESOURCES[threshold.signal]


def reclaim_event(resource: str) -> NodeEvent:
    """Return the event about the node when it starts to evict."""
    return NodeEvent("EvictionThresholdMet", f"Attempting to reclaim {resource}", "Warning")


def rank_for_eviction(pods: Iterable[PodInfo], threshold: Threshold) -> list[PodInfo]:
    """Return the pods that may be evicted, in the order of eviction.

    Kubelet evicts pods first that use more than they requested. Nothing runs here, so no pod does: the priority counts,
    and then the request.
    """
    resource = resource_of(threshold)
    return sorted(
        (pod for pod in pods if not pod.is_critical),
        key=lambda pod: (pod.priority, pod.request.amounts.get(resource, 0)),
    )


def grace_seconds(pod: PodInfo, threshold: Threshold, most_seconds: int) -> float:
    """Return the grace period of an evicted pod: a second below a hard threshold."""
    if not threshold.grace_seconds:
        return _IMMEDIATE_SECONDS
    return float(min(most_seconds, pod.grace_seconds))


def eviction_reason(threshold: Threshold, signals: Mapping[str, Observation]) -> tuple[str, str]:
    """Return the reason and the message in the status of an evicted pod."""
    resource = resource_of(threshold)
    message = f"The node was low on resource: {resource}. "
    if observation := signals.get(threshold.signal):
        least = threshold.value.of(observation.capacity)
        quantity = Quantity.of_bytes(least) if threshold.value.percent is not None else _amount(resource, least)
        message += f"Threshold quantity: {quantity}, available: {_amount(resource, observation.available)}. "
    return _EVICTED, message


def _amount(resource: str, amount: int) -> Quantity:
    return Quantity.of_count(amount) if resource in {"inodes", "pids"} else Quantity.of_bytes(amount)
