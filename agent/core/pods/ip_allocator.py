"""Pod IPs, allocated from the pod CIDRs of the node."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from agent.core.model import NodeObject

_PARSED = 256  # addresses and ranges of Nodes that stay parsed: each pod needs those of its Node


class Exhausted(Exception):
    """A CIDR has no free address; the message names its range."""


def host_addresses(node: NodeObject) -> tuple[str, ...]:
    """Return the hostIPs of the node's pods: the first address, and the first of the other family."""
    addresses = node.get("status", {}).get("addresses") or ()
    texts = [
        address.get("address", "")
        for kind in ("InternalIP", "ExternalIP")
        for address in addresses
        if address.get("type") == kind
    ]
    ips = [ip for ip in texts if _is(_address, ip)]
    other = [ip for ip in ips[1:] if _address(ip).version != _address(ips[0]).version]
    return (*ips[:1], *other[:1])


def pod_ranges(node: NodeObject) -> tuple[str, ...]:
    """Return the pod CIDRs of the node."""
    return tuple(cidr for cidr in node.get("spec", {}).get("podCIDRs") or () if _is(_network, cidr))


@lru_cache(maxsize=_PARSED)
def _address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)


@lru_cache(maxsize=_PARSED)
def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text)


def _is(kind: Callable[[str], object], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


class IPAllocator:
    """Allocates pod IPs one after the other; a freed address comes last."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, ...]] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def addresses(self, uid: str, ranges: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses of a pod, one from each range; raise Exhausted where none is free."""
        if uid not in self._of:
            self.keep(uid, tuple(self._next(cidr) for cidr in ranges))
        return self._of[uid]

    def keep(self, uid: str, ips: tuple[str, ...]) -> None:
        """Store the addresses that a pod has already."""
        self.free(uid)
        self._of[uid] = ips
        self._taken.update(ips)

    def free(self, uid: str) -> None:
        """Free the addresses of a pod."""
        self._taken.difference_update(self._of.pop(uid, ()))

    def _next(self, cidr: str) -> str:
        """Return the next free address; the first of a range is the gateway's, as in most networks."""
        network = _network(cidr)
        size = max(min(network.num_addresses, 2**20) - 3, 0)
        for step in range(size):
            place = (self._last.get(cidr, -1) + 1 + step) % size
            ip = str(network[place + 2])
            if ip not in self._taken:
                self._last[cidr] = place
                return ip
        raise Exhausted(f"no IP addresses available in range set: {network[0]}-{network[-1]}")
