"""Which pods have to go so that a critical one finds room, as kubelet's preemption chooses them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from agent.core.model import Object
from agent.core.pods.ending import Order
from agent.core.pods.parts import is_critical, priority, wanted_grace_seconds
from agent.core.pods.resources import claim, quality

Missing = Mapping[str, int]  # of each resource, in the units that the scheduler counts in
_Asked = tuple[Object, Mapping[str, int]]  # a pod, and what it requests

_REASON, _MESSAGE = "Preempting", "Preempted in order to admit critical pod"
_CONDITION = "Pod was preempted by Kubelet to accommodate a critical pod."


def making_room(pod: Object, now: datetime) -> Order:
    """How a pod ends that has to go."""
    return Order(_REASON, _MESSAGE, float(wanted_grace_seconds(pod)), now, _CONDITION)


def is_preemptable(pod: Object, by: Object) -> bool:
    """Whether one pod may have to go for another."""
    return is_critical(by) and (not is_critical(pod) or priority(pod) < priority(by))


def unmet(missing: Missing, pods: Sequence[Object]) -> Missing:
    """What would still be missing if all of these went."""
    return _left(missing, _asked(pods))


def victims(pods: Sequence[Object], missing: Missing) -> list[Object]:
    """As few as possible that free what is missing, the least guaranteed first."""
    asked = _asked(pods)
    effort, burst, guaranteed = (
        [one for one in asked if quality(one[0]) == kind] for kind in ("BestEffort", "Burstable", "Guaranteed")
    )
    # Of each class only those that must go although all of the classes below went.
    from_guaranteed = _nearest(guaranteed, _left(missing, [*effort, *burst]))
    from_burst = _nearest(burst, _left(missing, [*effort, *from_guaranteed]))
    from_effort = _nearest(effort, _left(missing, [*from_burst, *from_guaranteed]))
    return [pod for pod, _ in (*from_effort, *from_burst, *from_guaranteed)]


def _asked(pods: Sequence[Object]) -> list[_Asked]:
    return [(pod, {**claim(pod).amounts, "pods": 1}) for pod in pods]


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
