"""Which pods the node kills for a critical pod, chosen as kubelet's preemption chooses them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from agent.core.pods.admission import Admission, no_room
from agent.core.pods.info import PodInfo
from agent.core.pods.termination import KillRequest

Missing = Mapping[str, int]  # by resource, in the scheduler's units
_Requesting = tuple[PodInfo, Mapping[str, int]]  # a pod, and what it requests

_REASON, _MESSAGE = "Preempting", "Preempted in order to admit critical pod"
_CONDITION = "Pod was preempted by Kubelet to accommodate a critical pod."


def make_room(
    pod: PodInfo, missing: Missing, *, running: Sequence[PodInfo], terminating: Sequence[PodInfo]
) -> Admission:
    """Decide which pods end so that a critical pod gets what is missing; refuse the pod where that is not enough."""
    left = still_missing(missing, terminating)
    candidates = [other for other in running if is_preemptable(other, by=pod)] if left else []
    if short := still_missing(left, candidates):
        return Admission(refusal=no_room(short))
    return Admission(is_waiting=True, victims=victims(candidates, left))


def kill_for_preemption(pod: PodInfo, now: datetime) -> KillRequest:
    """Return the request to kill a preempted pod."""
    return KillRequest(_REASON, _MESSAGE, float(pod.grace_seconds), now, _CONDITION)


def is_preemptable(pod: PodInfo, by: PodInfo) -> bool:
    """Return whether one pod may be killed for another."""
    return by.is_critical and (not pod.is_critical or pod.priority < by.priority)


def still_missing(missing: Missing, pods: Sequence[PodInfo]) -> Missing:
    """Return what would still be missing if all of these pods ended."""
    return _left(missing, _requesting(pods))


def victims(pods: Sequence[PodInfo], missing: Missing) -> list[PodInfo]:
    """Return as few pods as possible that free what is missing, those of the lowest QoS class first."""
    candidates = _requesting(pods)
    effort, burst, guaranteed = (
        [entry for entry in candidates if entry[0].qos_class == kind]
        for kind in ("BestEffort", "Burstable", "Guaranteed")
    )
    # Of each class only the pods that are needed although all of the classes below end.
    from_guaranteed = _nearest(guaranteed, _left(missing, [*effort, *burst]))
    from_burst = _nearest(burst, _left(missing, [*effort, *from_guaranteed]))
    from_effort = _nearest(effort, _left(missing, [*from_burst, *from_guaranteed]))
    return [pod for pod, _ in (*from_effort, *from_burst, *from_guaranteed)]


def _requesting(pods: Sequence[PodInfo]) -> list[_Requesting]:
    return [(pod, {**pod.request.amounts, "pods": 1}) for pod in pods]


def _left(missing: Missing, ended: Sequence[_Requesting]) -> Missing:
    left = {name: amount - sum(requested.get(name, 0) for _, requested in ended) for name, amount in missing.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(pods: list[_Requesting], missing: Missing) -> list[_Requesting]:
    """Choose one pod after the other, each time the one that leaves least missing; of equals the smaller one."""
    left, chosen = list(pods), []
    while missing and left:
        best = min(left, key=lambda pod: (_distance(pod[1], missing), pod[1].get("memory", 0), pod[1].get("cpu", 0)))
        left.remove(best)
        chosen.append(best)
        missing = _left(missing, [best])
    return chosen


def _distance(requested: Mapping[str, int], missing: Missing) -> float:
    """Return how much would still be missing; every resource has the same weight."""
    shares = ((amount - requested.get(name, 0)) / amount for name, amount in missing.items())
    return sum(share**2 for share in shares if share > 0)
