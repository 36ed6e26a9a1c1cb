"""Which pods have to go so that a critical one finds room, as kubelet's preemption chooses them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from agent.core.pods.admission import Admission, no_room
from agent.core.pods.ending import Order
from agent.core.pods.info import PodInfo

Missing = Mapping[str, int]  # of each resource, in the units that the scheduler counts in
_Asked = tuple[PodInfo, Mapping[str, int]]  # a pod, and what it requests

_REASON, _MESSAGE = "Preempting", "Preempted in order to admit critical pod"
_CONDITION = "Pod was preempted by Kubelet to accommodate a critical pod."


def make_room(
    pod: PodInfo, missing: Missing, *, running: Sequence[PodInfo], terminating: Sequence[PodInfo]
) -> Admission:
    """Decide which pods end so that a critical pod gets what is missing; refuse the pod where that is not enough."""
    left = unmet(missing, terminating)
    candidates = [other for other in running if is_preemptable(other, by=pod)] if left else []
    if short := unmet(left, candidates):
        return Admission(refusal=no_room(short))
    return Admission(is_waiting=True, victims=victims(candidates, left))


def making_room(pod: PodInfo, now: datetime) -> Order:
    """How a pod ends that has to go."""
    return Order(_REASON, _MESSAGE, float(pod.grace_seconds), now, _CONDITION)


def is_preemptable(pod: PodInfo, by: PodInfo) -> bool:
    """Whether one pod may have to go for another."""
    return by.is_critical and (not pod.is_critical or pod.priority < by.priority)


def unmet(missing: Missing, pods: Sequence[PodInfo]) -> Missing:
    """What would still be missing if all of these went."""
    return _left(missing, _asked(pods))


def victims(pods: Sequence[PodInfo], missing: Missing) -> list[PodInfo]:
    """As few as possible that free what is missing, the least guaranteed first."""
    asked = _asked(pods)
    effort, burst, guaranteed = (
        [one for one in asked if one[0].qos_class == kind] for kind in ("BestEffort", "Burstable", "Guaranteed")
    )
    # Of each class only those that must go although all of the classes below went.
    from_guaranteed = _nearest(guaranteed, _left(missing, [*effort, *burst]))
    from_burst = _nearest(burst, _left(missing, [*effort, *from_guaranteed]))
    from_effort = _nearest(effort, _left(missing, [*from_burst, *from_guaranteed]))
    return [pod for pod, _ in (*from_effort, *from_burst, *from_guaranteed)]


def _asked(pods: Sequence[PodInfo]) -> list[_Asked]:
    return [(pod, {**pod.request.amounts, "pods": 1}) for pod in pods]


def _left(missing: Missing, gone: Sequence[_Asked]) -> Missing:
    left = {name: amount - sum(asked.get(name, 0) for _, asked in gone) for name, amount in missing.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(pods: list[_Asked], missing: Missing) -> list[_Asked]:
    """One pod after the other, each time the one that leaves least missing; of equals the one that asks for less."""
    left, chosen = list(pods), []
    while missing and left:
        best = min(left, key=lambda one: (_distance(one[1], missing), one[1].get("memory", 0), one[1].get("cpu", 0)))
        left.remove(best)
        chosen.append(best)
        missing = _left(missing, [best])
    return chosen


def _distance(asked: Mapping[str, int], missing: Missing) -> float:
    """How much would be missing still, each resource weighing the same."""
    shares = ((amount - asked.get(name, 0)) / amount for name, amount in missing.items())
    return sum(share**2 for share in shares if share > 0)
