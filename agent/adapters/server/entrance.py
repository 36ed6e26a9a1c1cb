"""Sockets that listen."""

import errno
import logging
import socket
from ipaddress import ip_address

from agent.ports import StartError

log = logging.getLogger(__name__)

_BACKLOG = 512  # a burst waits here for its turn; beyond it, the kernel lets a client wait for a second at least


def listen(address: str, port: int, *, flag: str) -> socket.socket:
    """A socket that listens; a StartError says why that cannot be."""
    try:
        found = _bound(address, port)
    except OSError as error:
        advice = f"check --address, or choose another port with {flag}"
        if error.errno == errno.EADDRINUSE:
            advice = f"is there another kubelet on this machine? Stop it, or choose another port with {flag}"
        raise StartError(f"cannot listen on {address}:{port}: {error.strerror}; {advice}") from error
    found.setblocking(False)
    log.info("Starting to listen", {"address": address, "port": port})
    return found


def _bound(address: str, port: int) -> socket.socket:
    """Where any address will do, those of both families, as in Go."""
    if ip_address(address).is_unspecified and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=_BACKLOG)
