"""What a pod asks of the node: requests, limits and the class of service that follows from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent.core.model import Object
from agent.core.pods.parts import containers, init_containers, is_sidecar
from agent.core.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]
_COMPUTE = ("cpu", "memory")
_ZERO = Quantity(0)


def pod_requests(pod: Object) -> Amounts:
    """What the scheduler sets aside: requests of the whole pod, its overhead included."""
    total = _aggregated(pod, "requests")
    return _added(total | _pod_level(pod, "requests"), _parsed(pod["spec"].get("overhead")))


def pod_limits(pod: Object) -> Amounts:
    """The limits of the whole pod; overhead is added to those that there are."""
    total = _aggregated(pod, "limits") | _pod_level(pod, "limits")
    overhead = _parsed(pod["spec"].get("overhead"))
    return _added(total, {name: amount for name, amount in overhead.items() if total.get(name, _ZERO).nano})


def printed(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Amounts as the API writes them."""
    return {name: str(amount) for name, amount in amounts.items()}


def quality(pod: Object) -> str:
    """The pod's class of service: Guaranteed, Burstable or BestEffort."""
    told: str | None = pod.get("status", {}).get("qosClass")
    return told or _quality(pod)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a pod takes of the node while it lives, in the units that the scheduler counts in."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    host_ports: frozenset[tuple[str, str, int]] = frozenset()  # address, protocol, port


def claim(pod: Object) -> Claim:
    """What this pod takes."""
    amounts = {name: units(name, amount) for name, amount in pod_requests(pod).items()}
    ports = frozenset(
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])  # noqa: S104  as the scheduler
        for container in (*containers(pod), *filter(is_sidecar, init_containers(pod)))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )
    return Claim(amounts, ports)


def units(name: str, amount: Quantity) -> int:
    """An amount as the scheduler counts it: CPUs in thousandths, everything else in whole units."""
    return amount.millis if name == "cpu" else amount.value


def _quality(pod: Object) -> str:
    level = pod["spec"].get("resources")
    parts = [level] if level else [one.get("resources") or {} for one in (*containers(pod), *init_containers(pod))]
    requests, limits = _sum_of_compute(parts, "requests"), _sum_of_compute(parts, "limits")
    if not requests and not limits:
        return "BestEffort"
    limited = all(_compute(part, "limits").keys() == set(_COMPUTE) for part in parts)
    equal = {name: amount.nano for name, amount in requests.items()} == {
        name: amount.nano for name, amount in limits.items()
    }
    return "Guaranteed" if limited and equal else "Burstable"


def _compute(part: Object, kind: str) -> Amounts:
    amounts = _parsed(part.get(kind))
    return {name: amounts[name] for name in _COMPUTE if name in amounts and amounts[name].nano > 0}


def _sum_of_compute(parts: list[Object], kind: str) -> Amounts:
    total: Amounts = {}
    for part in parts:
        total = _added(total, _compute(part, kind))
    return total


def _aggregated(pod: Object, kind: str) -> Amounts:
    """Containers and sidecars together, or the most that is needed while an init container runs."""
    total: Amounts = {}
    for container in containers(pod):
        total = _added(total, _of(container, kind))
    beside: Amounts = {}
    most: Amounts = {}
    for container in init_containers(pod):
        own = _of(container, kind)
        if is_sidecar(container):
            total, beside = _added(total, own), _added(beside, own)
            own = beside
        else:
            own = _added(own, beside)
        most = _most(most, own)
    return _most(total, most)


def _pod_level(pod: Object, kind: str) -> Amounts:
    level = _parsed((pod["spec"].get("resources") or {}).get(kind))
    return {name: amount for name, amount in level.items() if name in _COMPUTE or name.startswith("hugepages-")}


def _of(container: Object, kind: str) -> Amounts:
    return _parsed((container.get("resources") or {}).get(kind))


def _parsed(texts: Mapping[str, str] | None) -> Amounts:
    return {name: parse_quantity(text) for name, text in (texts or {}).items()}


def _added(left: Amounts, right: Amounts) -> Amounts:
    return _merged(left, right, lambda one, other: one.plus(other))


def _most(left: Amounts, right: Amounts) -> Amounts:
    return _merged(left, right, lambda one, other: other if other.nano > one.nano else one)


def _merged(left: Amounts, right: Amounts, both: Callable[[Quantity, Quantity], Quantity]) -> Amounts:
    return left | {name: both(left[name], amount) if name in left else amount for name, amount in right.items()}
