"""Addresses for pods, from the ranges that the cluster has given to the node."""

from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network

from agent.core.model import Object


class Exhausted(Exception):
    """A range has no address left; the message names it."""


def host_addresses(node: Object) -> tuple[str, ...]:
    """The node's own addresses as its pods tell them: the first, and the first of the other family."""
    told = node.get("status", {}).get("addresses") or ()
    found = [one.get("address", "") for kind in ("InternalIP", "ExternalIP") for one in told if one.get("type") == kind]
    ips = [ip for ip in found if _is(ip_address, ip)]
    other = [ip for ip in ips[1:] if ip_address(ip).version != ip_address(ips[0]).version]
    return (*ips[:1], *other[:1])


def pod_ranges(node: Object) -> tuple[str, ...]:
    """The ranges that pods of this node have their addresses from."""
    return tuple(cidr for cidr in node.get("spec", {}).get("podCIDRs") or () if _is(ip_network, cidr))


def _is(kind: Callable[[str], object], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


class AddressBook:
    """Which pod has which addresses: one after the other, an address that was freed comes last."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, ...]] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def addresses(self, uid: str, ranges: Sequence[str]) -> tuple[str, ...]:
        """The addresses of a pod, one from each range; Exhausted where there is none left."""
        if uid not in self._of:
            self.keep(uid, tuple(self._next(cidr) for cidr in ranges))
        return self._of[uid]

    def keep(self, uid: str, ips: tuple[str, ...]) -> None:
        """A pod has these addresses already."""
        self.free(uid)
        self._of[uid] = ips
        self._taken.update(ips)

    def free(self, uid: str) -> None:
        """A pod does not need its addresses any more."""
        self._taken.difference_update(self._of.pop(uid, ()))

    def _next(self, cidr: str) -> str:
        """The next free address; the first of a range is the gateway's, as with most networks."""
        network = ip_network(cidr, strict=False)
        size = max(min(network.num_addresses, 2**20) - 3, 0)
        for step in range(size):
            place = (self._last.get(cidr, -1) + 1 + step) % size
            ip = str(network[place + 2])
            if ip not in self._taken:
                self._last[cidr] = place
                return ip
        raise Exhausted(f"no IP addresses available in range set: {network[0]}-{network[-1]}")
