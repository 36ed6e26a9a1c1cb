"""The capacity of a node, and the reservations that pods do not get."""

from collections.abc import Mapping

from agent.core.config import NodeConfig
from agent.core.errors import ConfigError
from agent.core.model import HostSnapshot
from agent.core.pressure import Threshold
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


def parse_cpu_list(text: str) -> frozenset[int]:
    """Read a list of CPUs as the kernel writes it, such as `0-3,8`."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        try:
            cpus.update(range(int(first), int(last if dash else first) + 1))
        except ValueError as error:
            raise ConfigError(f'unable to parse reserved-cpus list, error: invalid syntax in "{text}"') from error
    return frozenset(cpus)


def check_reservations(config: NodeConfig, host: HostSnapshot) -> None:
    """Raise a ConfigError where more is reserved than the machine has, as kubelet does at start."""
    reserved = parse_cpu_list(config.resources.reserved_cpus)
    if not reserved <= host.online_cpus:
        online = _cpu_list(host.online_cpus)
        raise ConfigError(f"reserved-cpus: {config.resources.reserved_cpus} is not a subset of online-cpus: {online}")
    own = own_capacity(config, host)
    reservations = _reservations(config, own)
    for name, amount in own.items():
        if name in reservations and reservations[name].nano > amount.nano:
            raise ConfigError(
                f'invalid Node Allocatable configuration. Resource "{name}" has a reservation of {reservations[name]} '
                f"but capacity of {amount}. Expected capacity >= reservation."
            )


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one, such as nvidia.com/gpu."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def own_capacity(config: NodeConfig, host: HostSnapshot) -> dict[str, Quantity]:
    """Return the capacity of the host as the settings change it, by resource."""
    resources = config.resources
    own = {"cpu": Quantity.of_millis(host.cpu_millicores), "memory": Quantity.of_bytes(host.memory_bytes)}
    if host.nodefs and resources.local_storage:
        own["ephemeral-storage"] = Quantity.of_bytes(host.nodefs.capacity_bytes)
    for size, total in host.hugepages_bytes.items():
        own[f"hugepages-{Quantity.of_bytes(size)}"] = Quantity.of_bytes(total)
    own |= resources.overrides
    pods = resources.max_pods
    if resources.pods_per_core > 0:
        pods = min(own["cpu"].value * resources.pods_per_core, resources.max_pods)
    own.setdefault("pods", Quantity.of_count(pods))
    return {**own, **resources.extended}


def own_allocatable(config: NodeConfig, host: HostSnapshot) -> dict[str, Quantity]:
    """Return capacity less reservations and hard eviction thresholds; huge pages are taken off memory."""
    if config.resources.allocatable:
        return dict(config.resources.allocatable)
    own = own_capacity(config, host)
    reserved = _reservations(config, own)
    left = {name: amount.minus(reserved.get(name, _ZERO)).at_least_zero() for name, amount in own.items()}
    for name, amount in own.items():
        if name.startswith("hugepages-"):
            left["memory"] = left["memory"].minus(amount).at_least_zero()
    return left


def _reservations(config: NodeConfig, own: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return what pods do not get of the capacity, by resource."""
    resources = config.resources
    kube, system = dict(resources.kube_reserved), dict(resources.system_reserved)
    if resources.reserved_cpus:
        kube.pop("cpu", None)
        system["cpu"] = Quantity.of_count(len(parse_cpu_list(resources.reserved_cpus)))
    thresholds = () if resources.ignore_eviction else config.eviction.hard
    total: dict[str, Quantity] = {}
    for part in (kube, system, *(_reservation(threshold, own) for threshold in thresholds)):
        for name, amount in part.items():
            total[name] = Quantity(total.get(name, _ZERO).nano + amount.nano, amount.format)
    return total


def _reservation(threshold: Threshold, own: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Return what a hard threshold takes off allocatable: only memory and the node's filesystem count."""
    resource = _RESOURCE_OF_SIGNAL.get(threshold.signal, "")
    return {resource: Quantity.of_bytes(threshold.value.of(own[resource].value))} if resource in own else {}


def _cpu_list(cpus: frozenset[int]) -> str:
    """Print CPUs as the kernel does: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
