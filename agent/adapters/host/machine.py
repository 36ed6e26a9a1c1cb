"""The machine: its IDs, CPUs, huge pages and tasks, its network, and what the resolver says to the node's name."""

import platform
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address

import psutil

from agent.adapters.host.files import HostFiles
from agent.core.capacity import parse_cpu_list
from agent.core.model import DefaultRoute, Interface, IPAddress, Network

# Go's names of what uname(2) calls the machine
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386", "loongarch64": "loong64"}
_SYSTEM_UUID = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/system-id",
    "proc/device-tree/vm,uuid",
    "etc/machine-id",
)
_UNSPECIFIED_IPV6 = "0" * 32


def architecture() -> str:
    """Return the machine's architecture in Go's spelling."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def booted_at() -> datetime:
    """Return when this machine booted."""
    return datetime.fromtimestamp(psutil.boot_time(), UTC)


def system_uuid(files: HostFiles) -> str:
    """Return the UUID that the firmware has for the machine; without firmware that has one, the machine ID."""
    return files.first(_SYSTEM_UUID)


def os_image(files: HostFiles) -> str:
    """Return the name of the operating system."""
    for name in ("etc/os-release", "usr/lib/os-release"):
        if lines := files.lines(name):
            pairs = dict(line.partition("=")[::2] for line in lines)
            return pairs.get("PRETTY_NAME", "Linux").strip("\"'")
    return "Unknown"


def online_cpus(files: HostFiles) -> frozenset[int]:
    """Return the CPUs that are online; neither affinity nor a cgroup changes what a kubelet reports."""
    return parse_cpu_list(files.text("sys/devices/system/cpu/online"))


def hugepages_bytes(files: HostFiles) -> dict[int, int]:
    """Return how many bytes of huge pages of each size there are."""
    pages = {}
    for folder in sorted(files.path("sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        size = int(folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
        pages[size] = size * int((folder / "nr_hugepages").read_text())
    return pages


def pids_max(files: HostFiles) -> int:
    """Return how many tasks there can be."""
    return min(files.number("proc/sys/kernel/pid_max"), files.number("proc/sys/kernel/threads-max"))


def pids_used(files: HostFiles) -> int:
    """Return how many tasks there are."""
    return int(files.text("proc/loadavg").split()[3].partition("/")[2])


def network(files: HostFiles) -> Network:
    """Return the interfaces of our network namespace and its default routes, those of IPv4 first."""
    states = psutil.net_if_stats()
    interfaces = tuple(
        # As in kubelet, the flag that somebody has set it up; psutil's `isup` means a carrier, too.
        Interface(name=name, up=name in states and "up" in states[name].flags.split(","), addresses=addresses)
        for name, addresses in _interface_addresses()
    )
    return Network(interfaces=interfaces, default_routes=(*_ipv4_default_routes(files), *_ipv6_default_routes(files)))


def resolve(name: str) -> tuple[IPAddress, ...]:
    """Return the addresses of a name; none if it does not resolve."""
    try:
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries))


def _interface_addresses() -> Iterator[tuple[str, tuple[IPAddress, ...]]]:
    for name, entries in psutil.net_if_addrs().items():
        ips = (entry.address for entry in entries if entry.family in {socket.AF_INET, socket.AF_INET6})
        yield name, tuple(ip_address(ip.partition("%")[0]) for ip in ips)


def _ipv4_default_routes(files: HostFiles) -> Iterator[DefaultRoute]:
    for line in files.lines("proc/net/route")[1:]:
        interface, destination, *_ = line.split()
        if destination == "00000000":
            yield DefaultRoute(interface=interface, version=4)


def _ipv6_default_routes(files: HostFiles) -> Iterator[DefaultRoute]:
    for line in files.lines("proc/net/ipv6_route"):
        fields = line.split()
        # A route without a gateway is that of the loopback interface.
        if fields[0] == _UNSPECIFIED_IPV6 and fields[4] != _UNSPECIFIED_IPV6:
            yield DefaultRoute(interface=fields[9], version=6)
