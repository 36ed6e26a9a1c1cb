"""What is known about the host and the node, as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, in the API's own JSON shape."""

IPAddress = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    """One mounted filesystem, as statvfs tells it."""

    capacity_bytes: int
    available_bytes: int  # to those without privileges
    inodes: int
    inodes_free: int
    used_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A network interface and its addresses."""

    name: str
    up: bool
    addresses: tuple[IPAddress, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRoute:
    """A default route: the interface it leaves by, and its address family."""

    interface: str
    version: Literal[4, 6]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What the choice of the node's address depends on."""

    interfaces: tuple[Interface, ...] = ()
    default_routes: tuple[DefaultRoute, ...] = ()
    node_name_addresses: tuple[IPAddress, ...] = ()  # what the resolver says to the node's name


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """The host at one moment; what could not be read yet is nothing."""

    cpu_millicores: int = 0
    online_cpus: frozenset[int] = frozenset()
    memory_bytes: int = 0
    memory_available_bytes: int | None = None  # total less the root working set: not MemAvailable
    swap_bytes: int = 0
    hugepages_bytes: Mapping[int, int] = field(default_factory=dict)  # page size → all pages of it
    nodefs: Filesystem | None = None
    pids_max: int = 0
    pids_used: int | None = None
    network: Network = Network()
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    cgroup_version: Literal[0, 1, 2] = 0  # 0: there are none
    kernel_version: str = ""
    os_image: str = "Unknown"
    architecture: str = "amd64"  # in Go's spelling


def is_newer(left: str, right: str) -> bool:
    """Whether one resourceVersion is newer than another; what is not a number cannot be compared, and is not."""
    if not all(text.isascii() and text.isdecimal() for text in (left, right)):
        return False
    # Without int(), which raises for thousands of digits.
    left, right = left.lstrip("0"), right.lstrip("0")
    return (len(left), left) > (len(right), right)
