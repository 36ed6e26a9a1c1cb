"""Which address the Node tells: given, resolved, or of the default route."""

from collections.abc import Iterable
from ipaddress import ip_address

from agent.core.errors import ConfigError
from agent.core.facts import Facts, FieldError
from agent.core.model import DefaultRoute, Interface, IPAddress, Network, Object


def parse_node_ips(text: str) -> tuple[IPAddress, ...]:
    """Read `--node-ip`: one address, or one of each family; what is no address is ignored, as kubelet does."""
    ips = tuple(ip for item in text.split(",") if (ip := _parsed(item.strip())))
    if len(ips) > 2 or (len(ips) == 2 and ips[0].version == ips[1].version):
        raise ConfigError(f'bad --node-ip "{text}": must contain either a single IP or a dual-stack pair of IPs')
    if len(ips) == 2 and any(ip.is_unspecified for ip in ips):
        raise ConfigError("dual-stack node IP cannot include '0.0.0.0' or '::'")
    return ips


def addresses(facts: Facts) -> Object:
    """IPs first, Hostname last, as kubelet orders them; a cloud controller's addresses stay."""
    config, given = facts.config, _given(facts)
    if config.registration.external_cloud_provider and facts.observed.get("addresses"):
        return {}
    hostname = {"type": "Hostname", "address": config.node_name}
    if config.registration.external_cloud_provider and not config.node_ips:
        return {"addresses": [hostname]}
    chosen = given or (_chosen(facts),)
    return {"addresses": [*({"type": config.node_ip_type, "address": str(ip)} for ip in chosen), hostname]}


def provided_node_ip(facts: Facts) -> str | None:
    """What a cloud controller is told in an annotation: the addresses given with --node-ip."""
    given = _given(facts)
    return ",".join(map(str, given)) if given and facts.config.registration.external_cloud_provider else None


def _given(facts: Facts) -> tuple[IPAddress, ...]:
    """The addresses given with --node-ip; a FieldError tells of one that this node cannot have."""
    given = tuple(ip for ip in facts.config.node_ips if not ip.is_unspecified)
    for position, ip in enumerate(given):
        if fault := _fault(ip, facts.host.network):
            raise FieldError(f"failed to validate {'secondaryNodeIP' if position else 'nodeIP'}: {fault}")
    return given


def _chosen(facts: Facts) -> IPAddress:
    network, name = facts.host.network, facts.config.node_name
    if literal := _parsed(name):
        return literal
    family = facts.config.node_ips[0].version if facts.config.node_ips else 4
    resolved = [ip for ip in network.node_name_addresses if not _fault(ip, network)]
    if resolved:
        return next((ip for ip in resolved if ip.version == family), resolved[0])
    # kubelet v1.36: apimachinery net.chooseHostInterface, preferred family first
    for route in sorted(network.default_routes, key=lambda route: route.version != family):
        if ip := _address_of_route(route, network):
            return ip
    raise FieldError(f"can't get ip address of node {name}. error: no default routes found with a usable address")


def _address_of_route(route: DefaultRoute, network: Network) -> IPAddress | None:
    up = {interface.name: interface for interface in network.interfaces if interface.up}
    # Where the way out has only link-local addresses, the machine's own is often that of the loopback interface.
    return next(
        (ip for name in (route.interface, "lo") if name in up and (ip := _global(up[name], route.version))), None
    )


def _global(interface: Interface, version: int) -> IPAddress | None:
    return next((ip for ip in interface.addresses if ip.version == version and _is_global_unicast(ip)), None)


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
    if ip not in _all(network.interfaces):
        return f'node IP: "{ip}" not found in the host\'s network interfaces'
    return None


def _all(interfaces: Iterable[Interface]) -> set[IPAddress]:
    return {ip for interface in interfaces for ip in interface.addresses}


def _parsed(text: str) -> IPAddress | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
