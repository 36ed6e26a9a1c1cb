"""Requests and limits of a pod, and the QoS class that follows from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.core.model import Container, PodObject, ResourceRequirements
from agent.core.pods.accessors import containers, init_containers, is_sidecar
from agent.core.quantity import Quantity, parse_quantity

Amounts = dict[str, Quantity]
_Kind = Literal["limits", "requests"]
_COMPUTE = ("cpu", "memory")
_ZERO = Quantity(0)


def pod_requests(pod: PodObject) -> Amounts:
    """Return the requests of the whole pod, overhead included, as the scheduler counts them."""
    total = _aggregated(pod, "requests")
    return _added(total | _pod_level(pod, "requests"), _parsed(pod["spec"].get("overhead")))


def pod_limits(pod: PodObject) -> Amounts:
    """Return the limits of the whole pod; overhead is added to existing limits only."""
    total = _aggregated(pod, "limits") | _pod_level(pod, "limits")
    overhead = _parsed(pod["spec"].get("overhead"))
    return _added(total, {name: amount for name, amount in overhead.items() if total.get(name, _ZERO).nano})


def qos_class(pod: PodObject) -> str:
    """Return the pod's QoS class: Guaranteed, Burstable or BestEffort."""
    reported: str | None = pod.get("status", {}).get("qosClass")
    return reported or _qos_class(pod)


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What an active pod takes of the node, in the scheduler's units."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    host_ports: frozenset[tuple[str, str, int]] = frozenset()  # address, protocol, port


def request_of(pod: PodObject) -> PodRequest:
    """Return what this pod takes."""
    amounts = {name: units(name, amount) for name, amount in pod_requests(pod).items()}
    ports = frozenset(
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])  # noqa: S104  as the scheduler
        for container in (*containers(pod), *filter(is_sidecar, init_containers(pod)))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )
    return PodRequest(amounts, ports)


def units(name: str, amount: Quantity) -> int:
    """Convert an amount to the scheduler's units: CPU in millicores, everything else in whole units."""
    return amount.millis if name == "cpu" else amount.value


def _qos_class(pod: PodObject) -> str:
    level = pod["spec"].get("resources")
    specs = (*containers(pod), *init_containers(pod))
    parts = [level] if level else [spec.get("resources") or {} for spec in specs]
    requests, limits = _sum_of_compute(parts, "requests"), _sum_of_compute(parts, "limits")
    if not requests and not limits:
        return "BestEffort"
    limited = all(_compute(part, "limits").keys() == set(_COMPUTE) for part in parts)
    equal = {name: amount.nano for name, amount in requests.items()} == {
        name: amount.nano for name, amount in limits.items()
    }
    return "Guaranteed" if limited and equal else "Burstable"


def _compute(part: ResourceRequirements, kind: _Kind) -> Amounts:
    amounts = _parsed(part.get(kind))
    return {name: amounts[name] for name in _COMPUTE if name in amounts and amounts[name].nano > 0}


def _sum_of_compute(parts: list[ResourceRequirements], kind: _Kind) -> Amounts:
    total: Amounts = {}
    for part in parts:
        total = _added(total, _compute(part, kind))
    return total


def _aggregated(pod: PodObject, kind: _Kind) -> Amounts:
    """Sum up main containers and sidecars, or take what an init container needs while it runs if that is more."""
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


def _pod_level(pod: PodObject, kind: _Kind) -> Amounts:
    level = _parsed((pod["spec"].get("resources") or {}).get(kind))
    return {name: amount for name, amount in level.items() if name in _COMPUTE or name.startswith("hugepages-")}


def _of(container: Container, kind: _Kind) -> Amounts:
    return _parsed((container.get("resources") or {}).get(kind))


def _parsed(texts: Mapping[str, str] | None) -> Amounts:
    return {name: parse_quantity(text) for name, text in (texts or {}).items()}


def _added(left: Amounts, right: Amounts) -> Amounts:
    return _merged(left, right, lambda first, second: first.plus(second))


def _most(left: Amounts, right: Amounts) -> Amounts:
    return _merged(left, right, lambda first, second: second if second.nano > first.nano else first)


def _merged(left: Amounts, right: Amounts, both: Callable[[Quantity, Quantity], Quantity]) -> Amounts:
    return left | {name: both(left[name], amount) if name in left else amount for name, amount in right.items()}
