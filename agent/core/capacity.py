"""What the machine has, and what of it is offered to pods."""

from collections.abc import Mapping

from agent.core.config import Resources
from agent.core.errors import ConfigError
from agent.core.eviction import Observation, Threshold, observe
from agent.core.facts import Facts
from agent.core.model import HostSnapshot, Object
from agent.core.quantity import Quantity, QuantityError

_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_RESOURCE_OF_SIGNAL = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
_ZERO = Quantity(0)


def parse_reserved(flag: str, pairs: Mapping[str, str]) -> dict[str, Quantity]:
    """Read `--kube-reserved` or `--system-reserved`; a ConfigError names the flag and the key."""
    reserved = {}
    for name, text in pairs.items():
        if name not in _RESERVABLE:
            raise ConfigError(f'{flag} value failed to parse: cannot reserve "{name}" resource')
        try:
            reserved[name] = Quantity.parse(text)
        except QuantityError as error:
            raise ConfigError(
                f'{flag} value failed to parse: failed to parse quantity "{text}" for "{name}" resource: {error}'
            ) from error
        if reserved[name].nano < 0:
            raise ConfigError(
                f'{flag} value failed to parse: resource quantity for "{name}" cannot be negative: {text}'
            )
    return reserved


def capacity(facts: Facts) -> Object:
    """Capacity of the host; resources that others put on the Node are kept."""
    return {"capacity": {**facts.observed.get("capacity", {}), **_printed(_own_capacity(facts))}}


def allocatable(facts: Facts) -> Object:
    """Capacity less reservations and hard eviction thresholds; huge pages are taken off memory."""
    own = _own_capacity(facts)
    held_back = _held_back(facts)
    left = {name: amount.minus(held_back.get(name, _ZERO)).at_least_zero() for name, amount in own.items()}
    for name, amount in own.items():
        if name.startswith("hugepages-"):
            left["memory"] = left["memory"].minus(amount).at_least_zero()
    foreign = {name: text for name, text in capacity(facts)["capacity"].items() if name not in own}
    return {"allocatable": {**foreign, **_printed(left)}}


def _own_capacity(facts: Facts) -> dict[str, Quantity]:
    host = facts.host
    own = {"cpu": Quantity.of_count(host.cpus), "memory": Quantity.of_bytes(host.memory_bytes)}
    if host.nodefs:
        own["ephemeral-storage"] = Quantity.of_bytes(host.nodefs.capacity_bytes)
    for size, total in host.hugepages_bytes.items():
        own[f"hugepages-{Quantity.of_bytes(size)}"] = Quantity.of_bytes(total)
    own["pods"] = Quantity.of_count(_pods(facts.config.resources, host))
    return own


def _held_back(facts: Facts) -> dict[str, Quantity]:
    resources, signals = facts.config.resources, observe(facts.host)
    total: dict[str, Quantity] = {}
    evicted = [_reservation(threshold, signals) for threshold in facts.config.eviction.hard]
    for part in (resources.kube_reserved, resources.system_reserved, *evicted):
        for name, amount in part.items():
            total[name] = Quantity(total.get(name, _ZERO).nano + amount.nano, amount.format)
    return total


def _reservation(threshold: Threshold, signals: Mapping[str, Observation]) -> dict[str, Quantity]:
    """What a hard threshold takes off allocatable: only memory and the node's filesystem count."""
    resource, signal = _RESOURCE_OF_SIGNAL.get(threshold.signal), signals.get(threshold.signal)
    return {resource: Quantity.of_bytes(threshold.value.of(signal.capacity))} if resource and signal else {}


def _pods(resources: Resources, host: HostSnapshot) -> int:
    if resources.pods_per_core > 0:
        return min(host.cpus * resources.pods_per_core, resources.max_pods)
    return resources.max_pods


def _printed(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
