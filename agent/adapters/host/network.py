"""Interfaces, default routes, and what the resolver says to the node's name."""

import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Any

import psutil

from agent.adapters.host.files import HostFiles
from agent.core.model import DefaultRoute, Interface, IPAddress

_ANYWHERE = "0" * 32


def resolve(name: str) -> tuple[IPAddress, ...]:
    """The addresses of a name; none where nobody knows it."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def interfaces() -> tuple[Interface, ...]:
    """The interfaces of our network namespace."""
    states = psutil.net_if_stats()
    return tuple(
        Interface(name=name, up=name in states and _is_up(states[name].flags), addresses=tuple(_ips(entries)))
        for name, entries in psutil.net_if_addrs().items()
    )


def default_routes(files: HostFiles) -> tuple[DefaultRoute, ...]:
    """The routes to everywhere, IPv4 first."""
    return (*_ipv4_default_routes(files), *_ipv6_default_routes(files))


def _is_up(flags: str) -> bool:
    """Whether somebody has switched it on; psutil's `isup` asks for a carrier, too, and a kubelet does not."""
    return "up" in flags.split(",")


def _ips(entries: Iterable[Any]) -> Iterator[IPAddress]:
    for entry in entries:
        if entry.family in {socket.AF_INET, socket.AF_INET6}:
            yield ip_address(entry.address.partition("%")[0])


def _ipv4_default_routes(files: HostFiles) -> Iterator[DefaultRoute]:
    for line in files.lines("proc/net/route")[1:]:
        interface, destination, *_ = line.split()
        if destination == "00000000":
            yield DefaultRoute(interface=interface, version=4)


def _ipv6_default_routes(files: HostFiles) -> Iterator[DefaultRoute]:
    for line in files.lines("proc/net/ipv6_route"):
        fields = line.split()
        if fields[0] == _ANYWHERE and fields[4] != _ANYWHERE:  # one without a gateway is of the loopback interface
            yield DefaultRoute(interface=fields[9], version=6)
