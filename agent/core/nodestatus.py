"""The status of a Node: setters as in kubelet's nodestatus, each of which fills one family of fields from `Facts`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import NamedTuple

from agent.core.capacity import own_allocatable, own_capacity
from agent.core.config import NodeConfig
from agent.core.errors import ConfigError
from agent.core.model import (
    Condition,
    DefaultRoute,
    HostSnapshot,
    IPAddress,
    Network,
    NodeAddress,
    NodeObject,
    NodeStatus,
    Object,
    PodStatus,
)
from agent.core.quantity import format_amounts
from agent.core.times import timestamp

# type → (reason, message) while True, (reason, message) while False
_PRESSURE = {
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ),
}
_READY = ("KubeletReady", "kubelet is posting ready status")
PRESSURE_TYPES = tuple(_PRESSURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The host, the settings, what the API server shows, and the time: all that a status depends on."""

    config: NodeConfig
    host: HostSnapshot
    observed: NodeStatus  # the Node's status as last seen; empty for a Node not created yet
    pressure: frozenset[str]  # the pressure conditions that hold
    problems: tuple[str, ...]  # why the node is not ready; empty when it is
    now: datetime


class FieldError(Exception):
    """A setter cannot fill its fields; they keep their previous value."""


def parse_node_ips(text: str) -> tuple[IPAddress, ...]:
    """Read `--node-ip`: one address, or one of each family; what is no address is ignored, as kubelet does."""
    ips = tuple(ip for item in text.split(",") if (ip := _parse_ip(item.strip())))
    if len(ips) > 2 or (len(ips) == 2 and ips[0].version == ips[1].version):
        raise ConfigError(f'bad --node-ip "{text}": must contain either a single IP or a dual-stack pair of IPs')
    if len(ips) == 2 and any(ip.is_unspecified for ip in ips):
        raise ConfigError("dual-stack node IP cannot include '0.0.0.0' or '::'")
    return ips


def addresses(facts: Facts) -> NodeStatus:
    """IPs first, Hostname last, as kubelet orders them; addresses stay that a cloud controller or a creator has set."""
    config, node_ips = facts.config, _valid_node_ips(facts)
    if config.registration.external_cloud_provider and facts.observed.get("addresses"):
        return {}
    if config.registration.keeps_addresses:
        return {}
    hostname: NodeAddress = {"type": "Hostname", "address": config.node_name}
    if config.registration.external_cloud_provider and not config.node_ips:
        return {"addresses": [hostname]}
    ips = node_ips or (_default_ip(facts),)
    return {"addresses": [*(NodeAddress(type=config.node_ip_type, address=str(ip)) for ip in ips), hostname]}


def provided_node_ip(facts: Facts) -> str | None:
    """The annotation by which a cloud controller learns the addresses of --node-ip; None where there is none."""
    node_ips = _valid_node_ips(facts)
    return ",".join(map(str, node_ips)) if node_ips and facts.config.registration.external_cloud_provider else None


def _valid_node_ips(facts: Facts) -> tuple[IPAddress, ...]:
    """The addresses of --node-ip; raise FieldError where this node cannot have one of them."""
    node_ips = tuple(ip for ip in facts.config.node_ips if not ip.is_unspecified)
    for position, ip in enumerate(node_ips):
        if fault := _fault(ip, facts.host.network):
            raise FieldError(f"failed to validate {'secondaryNodeIP' if position else 'nodeIP'}: {fault}")
    return node_ips


def _default_ip(facts: Facts) -> IPAddress:
    """The node name itself, what the resolver answers to it, or the address of the default route."""
    network, name = facts.host.network, facts.config.node_name
    if literal := _parse_ip(name):
        return literal
    family = facts.config.node_ips[0].version if facts.config.node_ips else 4
    resolved = [ip for ip in network.node_name_addresses if not _fault(ip, network)]
    if resolved:
        return next((ip for ip in resolved if ip.version == family), resolved[0])
    if ip := routed_address(network, family):
        return ip
    raise FieldError(f"can't get ip address of node {name}. error: no default routes found with a usable address")


def routed_address(network: Network, family: int = 4) -> IPAddress | None:
    """Return the address of the default route, preferably of this family; None where there is none."""
    # kubelet v1.36: apimachinery net.chooseHostInterface, preferred family first
    routes = sorted(network.default_routes, key=lambda route: route.version != family)
    return next((ip for route in routes if (ip := _address_of_route(route, network))), None)


def _address_of_route(route: DefaultRoute, network: Network) -> IPAddress | None:
    up = {interface.name: interface for interface in network.interfaces if interface.up}
    # Where the interface of the route has only link-local addresses, the machine's own is often that of loopback.
    interfaces = [up[name] for name in (route.interface, "lo") if name in up]
    candidates = (ip for interface in interfaces for ip in interface.addresses if ip.version == route.version)
    return next(filter(_is_global_unicast, candidates), None)


def _is_global_unicast(ip: IPAddress) -> bool:
    # Go's notion: everything that is not special, private ranges included.
    return not (
        ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or str(ip) == "255.255.255.255"
    )


def _fault(ip: IPAddress, network: Network) -> str | None:
    if ip.is_loopback:
        return "nodeIP can't be loopback address"
    if ip.is_multicast:
        return "nodeIP can't be a multicast address"
    if ip.is_link_local:
        return "nodeIP can't be a link-local unicast address"
    if ip.is_unspecified:
        return "nodeIP can't be an all zeros address"
    if not any(ip in interface.addresses for interface in network.interfaces):
        return f'node IP: "{ip}" not found in the host\'s network interfaces'
    return None


def _parse_ip(text: str) -> IPAddress | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def capacity(facts: Facts) -> NodeStatus:
    """Capacity of the host; resources that others put on the Node are kept, and on an adopted one their amounts."""
    own, observed = format_amounts(own_capacity(facts.config, facts.host)), facts.observed.get("capacity", {})
    return {"capacity": {**own, **observed} if facts.config.registration.adopted else {**observed, **own}}


def allocatable(facts: Facts) -> NodeStatus:
    """What of the capacity pods may have; resources that others put on the Node are allocatable as a whole."""
    own = own_allocatable(facts.config, facts.host)
    foreign = {name: text for name, text in facts.observed.get("capacity", {}).items() if name not in own}
    kept = facts.observed.get("allocatable", {}) if facts.config.registration.adopted else {}
    return {"allocatable": {**foreign, **format_amounts(own), **kept}}


def missing_capacity(facts: Facts) -> list[str]:
    """The resources without which a node is not ready."""
    needed = ["cpu", "memory", "pods", *(["ephemeral-storage"] if facts.config.resources.local_storage else [])]
    reported = capacity(facts)["capacity"]
    return [name for name in needed if name not in reported]


def node_info(facts: Facts) -> NodeStatus:
    """The identity of the machine and of what runs on it."""
    host, config = facts.host, facts.config
    info: Object = {
        "machineID": host.machine_id,
        "systemUUID": host.system_uuid,
        "bootID": host.boot_id,
        "kernelVersion": host.kernel_version,
        "osImage": host.os_image,
        "containerRuntimeVersion": config.container_runtime_version,
        "kubeletVersion": config.kubelet_version,
        "kubeProxyVersion": config.kube_proxy_version,  # kubelet v1.36: always empty, the key stays
        "operatingSystem": host.operating_system,
        "architecture": host.architecture,
    }
    if host.swap_bytes:
        info["swap"] = {"capacity": host.swap_bytes}
    return {"nodeInfo": info}


def daemon_endpoints(facts: Facts) -> NodeStatus:
    """Where the kubelet's API is served; `Port` has a capital letter in the API."""
    return {"daemonEndpoints": {"kubeletEndpoint": {"Port": facts.config.kubelet_port}}}


def declared_features(facts: Facts) -> NodeStatus:
    """Node features that the scheduler matches pods against; without any, what is there stays, as in a kubelet."""
    return {"declaredFeatures": list(facts.config.declared_features)} if facts.config.declared_features else {}


def conditions(facts: Facts) -> NodeStatus:
    """The four conditions that a kubelet owns, in place, or appended with Ready last; those of others stay."""
    ours = {kind: _pressure(facts, kind) for kind in _PRESSURE} | {"Ready": _ready(facts)}
    observed = facts.observed.get("conditions", [])
    kept = [ours.pop(condition["type"], condition) for condition in observed]
    return {"conditions": [*kept, *ours.values()]}


def find_condition(status: NodeStatus | PodStatus, kind: str) -> Condition | None:
    """Return the condition of this type; None if the status has none."""
    return next((condition for condition in status.get("conditions") or () if condition["type"] == kind), None)


def is_blank(node: NodeObject) -> bool:
    """Return whether nobody has reported on the Node yet."""
    return find_condition(node.get("status", {}), "Ready") is None


def is_ready(status: NodeStatus) -> bool:
    """Return whether the status has Ready=True."""
    ready = find_condition(status, "Ready")
    return ready is not None and ready["status"] == "True"


def _pressure(facts: Facts, kind: str) -> Condition:
    """The condition of one pressure; reason and message change only when the status flips, as in kubelet."""
    holds, now = kind in facts.pressure, timestamp(facts.now)
    old = find_condition(facts.observed, kind)
    if old and old["status"] == str(holds):
        return {**old, "lastHeartbeatTime": now}
    return _condition(kind, holds, now, now, _PRESSURE[kind][0 if holds else 1])


def _ready(facts: Facts) -> Condition:
    problems = list(facts.problems)
    if missing := missing_capacity(facts):
        problems.append(f"missing node capacity for resources: {', '.join(missing)}")
    holds, now = not problems, timestamp(facts.now)
    old = find_condition(facts.observed, "Ready")
    since = old["lastTransitionTime"] if old and old["status"] == str(holds) else now
    if holds:
        return _condition("Ready", holds, now, since, _READY)
    distinct = list(dict.fromkeys(problems))
    message = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    return _condition("Ready", holds, now, since, ("KubeletNotReady", message))


def _condition(kind: str, holds: bool, now: str, since: str, explanation: tuple[str, str]) -> Condition:
    return {
        "type": kind,
        "status": str(holds),
        "lastHeartbeatTime": now,
        "lastTransitionTime": since,
        "reason": explanation[0],
        "message": explanation[1],
    }


Setter = Callable[[Facts], NodeStatus]

SETTERS: tuple[Setter, ...] = (
    addresses,
    capacity,
    allocatable,
    node_info,
    daemon_endpoints,
    conditions,
    declared_features,
)


class Desired(NamedTuple):
    """The status this Node should carry, and why some fields could not be set."""

    status: NodeStatus
    errors: tuple[str, ...]


def desired_status(facts: Facts) -> Desired:
    """Return the status this Node should carry now; fields that others wrote are kept."""
    status: NodeStatus = {**facts.observed}
    errors = []
    for setter in SETTERS:
        try:
            status |= setter(facts)
        except FieldError as error:
            errors.append(str(error))
    return Desired(status, tuple(errors))
