"""Interfaces, default routes, and what the resolver says to the node's name."""

import asyncio
import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Any

import psutil

from agent.adapters.host.files import HostFiles
from agent.core.model import DefaultRoute, Interface, IPAddress

_RESOLVER_SECONDS = 2.0
_RTF_UP, _RTF_GATEWAY = 0x1, 0x2


async def resolve(name: str) -> tuple[IPAddress, ...]:
    """The addresses of a name; none where nobody knows it, or the resolver does not answer in time."""
    try:
        async with asyncio.timeout(_RESOLVER_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def interfaces() -> tuple[Interface, ...]:
    """The interfaces of our network namespace."""
    states = psutil.net_if_stats()
    return tuple(
        Interface(name=name, up=bool(name in states and states[name].isup), addresses=tuple(_ips(entries)))
        for name, entries in psutil.net_if_addrs().items()
    )


def default_routes(files: HostFiles) -> tuple[DefaultRoute, ...]:
    """Default routes with a gateway, IPv4 first."""
    return (*_ipv4_default_routes(files), *_ipv6_default_routes(files))


def _ips(entries: Iterable[Any]) -> Iterator[IPAddress]:
    for entry in entries:
        if entry.family in {socket.AF_INET, socket.AF_INET6}:
            yield ip_address(entry.address.partition("%")[0])


def _ipv4_default_routes(files: HostFiles) -> Iterator[DefaultRoute]:
    for line in files.lines("proc/net/route")[1:]:
        interface, destination, _, flags, *_ = line.split()
        if destination == "00000000" and _is_through_gateway(flags):
            yield DefaultRoute(interface=interface, version=4)


def _ipv6_default_routes(files: HostFiles) -> Iterator[DefaultRoute]:
    for line in files.lines("proc/net/ipv6_route"):
        fields = line.split()
        if int(fields[0], 16) == 0 and fields[1] == "00" and _is_through_gateway(fields[8]):
            yield DefaultRoute(interface=fields[9], version=6)


def _is_through_gateway(flags: str) -> bool:
    return int(flags, 16) & (_RTF_UP | _RTF_GATEWAY) == _RTF_UP | _RTF_GATEWAY
