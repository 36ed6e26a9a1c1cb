"""A fleet: groups of nodes that are alike, and the plan of each node, which follows from the fleet and a seed alone."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from ipaddress import IPv4Address
from math import gcd

from agent.core.config import NodeConfig
from agent.core.errors import ConfigError
from agent.core.labels import subdomain_faults
from agent.core.model import DefaultRoute, HostSnapshot, Interface, IPAddress, Network
from agent.core.name_template import NameTemplate

FLEET_LABEL, GROUP_LABEL = "fake-kubelet.dev/fleet", "fake-kubelet.dev/group"
ZONE_LABEL, REGION_LABEL = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
MOST_NODES_OF_A_GROUP, MOST_GROUPS = 2**16, 2**8 - 1  # each node has an address of its own in 10.0.0.0/8

_REGION = re.compile(r"([a-z]+(?:-[a-z]+)+-?[0-9]+)-?[a-z]")  # of zones such as us-east-1a and europe-west4-b
_FIRST_ADDRESS = int(IPv4Address("10.0.0.1"))
_ADDRESSES = 2**24 - 2
_STRATUM, _STRIDE = 100, 61  # each of 100 nodes has a percent of its own; neighbours are far apart


class GroupError(ConfigError):
    """A group is wrong; `position` and `field` say where."""

    def __init__(self, position: int, field: str, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """How one node comes up, as drawn from the seed."""

    delay_seconds: float = 0.0
    registers: bool = True
    becomes_ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupRule:
    """How the nodes of a group come up."""

    delay_seconds: float = 0.0
    jitter_seconds: float = 0.0  # up to so much is added to the delay
    never_register_percent: float = 0.0
    never_ready_percent: float = 0.0  # of all nodes; they are others than those that never register


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeModel:
    """What a node looks like. IDs that the machine has are for the node that has the model's name, and a provider ID is
    for the first node after this model."""

    config: NodeConfig
    machine: HostSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes that are alike: node N is made after model N, and from the last model on after the first again."""

    name: str
    count: int
    models: tuple[NodeModel, ...]
    template: NameTemplate | None = None  # None: the names of the models
    zones: Mapping[str, int] = field(default_factory=dict)  # zone → weight
    startup: StartupRule = StartupRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """One node of a fleet: its settings, the machine that stands for its host, and how it comes up."""

    group: str
    index: int
    config: NodeConfig
    machine: HostSnapshot
    startup: Startup

    @property
    def name(self) -> str:
        """The name of the Node."""
        return self.config.node_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Groups of nodes under one name, by whose label the cluster finds them."""

    name: str
    groups: tuple[Group, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise GroupError where a group cannot be, or has a name that no Node can have, or that stands twice."""
        owners: dict[str, str] = {}
        for position, group in enumerate(self.groups):
            if position >= MOST_GROUPS:
                raise GroupError(position, "name", f"a fleet has at most {MOST_GROUPS} groups")
            if any(group.name == other.name for other in self.groups[:position]):
                raise GroupError(position, "name", f'there are two groups "{group.name}"')
            if not 0 <= group.count <= MOST_NODES_OF_A_GROUP:
                raise GroupError(position, "count", f"{group.count} is not from 0 to {MOST_NODES_OF_A_GROUP}")
            for name in names(group):
                if faults := subdomain_faults(name):
                    raise GroupError(position, "nameTemplate", f'"{name}" is no name of a Node: {faults[0]}')
                if name in owners:
                    others = "" if owners[name] == group.name else f", one of them in group {owners[name]}"
                    raise GroupError(position, "nameTemplate", f'two nodes would have the name "{name}"{others}')
                owners[name] = group.name

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return sum(group.count for group in self.groups)


def names(group: Group) -> Iterator[str]:
    """Yield the names of the nodes of a group, in order."""
    for index, zone in enumerate(_zones(group)):
        yield _name(group, index, zone)


def plans(fleet: Fleet) -> Iterator[NodePlan]:
    """Yield the plan of every node, by group and index. The same fleet has the same plans, wherever it is asked.

    A group that grows keeps its first nodes as they are.
    """
    for position, group in enumerate(fleet.groups):
        configs: dict[tuple[int, str], NodeConfig] = {}  # nodes of the same model and zone share all but their name
        for index, zone in enumerate(_zones(group)):
            turn, number = divmod(index, len(group.models))
            model, key = group.models[number], (number, zone)
            if key not in configs:
                configs[key] = _with_labels(model.config, fleet, group, zone)
            name = _name(group, index, zone)
            yield NodePlan(
                group=group.name,
                index=index,
                config=_named(configs[key], name, is_first=turn == 0),
                machine=_machine(model, fleet.name, name, position * MOST_NODES_OF_A_GROUP + index),
                startup=_startup(group.startup, f"{fleet.seed}/{fleet.name}/{group.name}", index),
            )


def reached_at(plan: NodePlan, address: IPAddress | None, port: int, *, is_shared: bool) -> NodePlan:
    """Return the plan of a node whose kubelet API is at this port and, unless the plan says where, at this address."""
    config = replace(plan.config, kubelet_port=port, shares_port=is_shared)
    machine = plan.machine
    if address and not _own_addresses(plan.config):
        machine = replace(machine, network=_network((address,)))
    return replace(plan, config=config, machine=machine)


@dataclass(frozen=True, slots=True)
class Difference:
    """What turns the nodes that run into those that are wanted."""

    added: tuple[NodePlan, ...]
    changed: tuple[NodePlan, ...]  # as they are wanted; their names stay
    removed: tuple[NodePlan, ...]


def difference(running: Iterable[NodePlan], wanted: Iterable[NodePlan]) -> Difference:
    """Return what to add, to change and to remove. A node that runs is not changed by a new delay of its start."""
    before = {plan.name: plan for plan in running}
    after = {plan.name: plan for plan in wanted}
    return Difference(
        added=tuple(plan for name, plan in after.items() if name not in before),
        changed=tuple(
            plan for name, plan in after.items() if name in before and _lasting(before[name]) != _lasting(plan)
        ),
        removed=tuple(plan for name, plan in before.items() if name not in after),
    )


def scaled(fleet: Fleet, counts: Mapping[str, int]) -> Fleet:
    """Return the fleet with other counts for some groups. Raises ConfigError for a group that there is not."""
    unknown = sorted(counts.keys() - {group.name for group in fleet.groups})
    if unknown:
        others = ", ".join(group.name for group in fleet.groups)
        raise ConfigError(f'fleet {fleet.name} has no group "{unknown[0]}"; its groups are {others}')
    groups = tuple(replace(group, count=counts.get(group.name, group.count)) for group in fleet.groups)
    try:
        return replace(fleet, groups=groups)
    except GroupError as error:
        raise ConfigError(f"group {groups[error.position].name}: {error}") from error


def spread(weights: Mapping[str, int]) -> tuple[str, ...]:
    """Return the order in which nodes go to zones, after which it begins again: each zone in turn, by its weight.

    Any number of nodes from the first on is spread as evenly as the weights allow.
    """
    divisor = gcd(*weights.values())
    total = sum(weights.values()) // (divisor or 1)
    credit = dict.fromkeys(weights, 0)
    order = []
    for _ in range(total):
        for zone, weight in weights.items():
            credit[zone] += weight // divisor
        chosen = max(credit, key=lambda zone: credit[zone])
        credit[chosen] -= total
        order.append(chosen)
    return tuple(order)


def region_of(zone: str) -> str:
    """Return the region that the name of a zone begins with; empty where it does not look like one."""
    match = _REGION.fullmatch(zone)
    return match[1] if match else ""


def _zones(group: Group) -> Iterator[str]:
    """Yield the zone of each node of a group."""
    order = spread(group.zones) or tuple(model.config.registration.labels.get(ZONE_LABEL, "") for model in group.models)
    for index in range(group.count):
        yield order[index % len(order)]


def _name(group: Group, index: int, zone: str) -> str:
    if group.template:
        return group.template.name(group=group.name, zone=zone, index=index)
    turn, number = divmod(index, len(group.models))
    name = group.models[number].config.node_name
    return f"{name}-{turn}" if turn else name


def _with_labels(config: NodeConfig, fleet: Fleet, group: Group, zone: str) -> NodeConfig:
    """Return the settings with the labels of the fleet; a region that the settings have is kept."""
    labels = {**config.registration.labels, FLEET_LABEL: fleet.name, GROUP_LABEL: group.name}
    if group.zones:
        labels[ZONE_LABEL] = zone
        if region := region_of(zone):
            labels.setdefault(REGION_LABEL, region)
    return replace(config, registration=replace(config.registration, labels=labels))


def _named(config: NodeConfig, name: str, *, is_first: bool) -> NodeConfig:
    if config.registration.provider_id and not is_first:
        config = replace(config, registration=replace(config.registration, provider_id=""))
    return replace(config, node_name=name)


def _machine(model: NodeModel, fleet_name: str, name: str, number: int) -> HostSnapshot:
    """Return the machine of one node: with IDs of its own, and an address that no other node of the fleet has."""
    machine = model.machine
    if not (machine.machine_id and model.config.node_name == name):
        machine = identified(machine, f"{fleet_name}/{name}")
    return replace(machine, network=_network(_own_addresses(model.config) or (IPv4Address(_FIRST_ADDRESS + number),)))


def identified(machine: HostSnapshot, identity: str) -> HostSnapshot:
    """Return the machine with IDs that follow from an identity."""
    return replace(
        machine,
        machine_id=_digest(f"{identity}/machine").hex(),
        system_uuid=_uuid(f"{identity}/system"),
        boot_id=_uuid(f"{identity}/boot"),
    )


def placed_anywhere(plan: NodePlan) -> NodePlan:
    """Return the plan with an address that follows from its name, unless it has one."""
    address = IPv4Address(_FIRST_ADDRESS + int.from_bytes(_digest(plan.name)[:3]) % _ADDRESSES)
    return replace(plan, machine=replace(plan.machine, network=_network(_own_addresses(plan.config) or (address,))))


def _own_addresses(config: NodeConfig) -> tuple[IPAddress, ...]:
    return tuple(ip for ip in config.node_ips if not ip.is_unspecified)


def _network(addresses: tuple[IPAddress, ...]) -> Network:
    routes = tuple(DefaultRoute(interface="eth0", version=version) for version in (4, 6))
    return Network(interfaces=(Interface(name="eth0", up=True, addresses=addresses),), default_routes=routes)


def _startup(rule: StartupRule, seed: str, index: int) -> Startup:
    """Draw how a node comes up: of each hundred nodes, as many fail as the percentages say."""
    block, place = divmod(index, _STRATUM)
    shift = _STRATUM * _chance(f"{seed}/{block}/fault")
    percentile = (place * _STRIDE + shift) % _STRATUM
    never = rule.never_register_percent
    return Startup(
        delay_seconds=rule.delay_seconds + rule.jitter_seconds * _chance(f"{seed}/{index}/delay"),
        registers=percentile >= never,
        becomes_ready=not never <= percentile < never + rule.never_ready_percent,
    )


def _lasting(plan: NodePlan) -> NodePlan:
    return replace(plan, startup=replace(plan.startup, delay_seconds=0.0))


def _chance(seed: str) -> float:
    """Return a number from 0 up to 1 that depends on the seed alone."""
    return int.from_bytes(_digest(seed)[:6]) / 2**48


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def _uuid(text: str) -> str:
    digits = _digest(text).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
