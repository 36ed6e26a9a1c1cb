"""Free loopback ports."""

import secrets
import socket

# Below the range from which Linux gives ports to outgoing connections: a port found free there can be taken a moment
# later by any client on the machine.
_CANDIDATES = range(20000, 32000)


def free_ports(count: int) -> list[int]:
    """As many different loopback ports as asked for, on which nobody listens."""
    found: list[int] = []
    for port in secrets.SystemRandom().sample(_CANDIDATES, len(_CANDIDATES)):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
