"""Free loopback ports."""

import itertools
import secrets
import socket

# Below the range from which Linux gives ports to outgoing connections: a port found free there can be taken a moment
# later by any client on the machine. In turn, so that nobody gets what another was given and does not listen on yet.
_RANGE = range(20000, 32000)
_CANDIDATES = itertools.cycle(secrets.SystemRandom().sample(_RANGE, len(_RANGE)))


def free_ports(count: int) -> list[int]:
    """As many different loopback ports as asked for, on which nobody listens."""
    return list(itertools.islice(filter(_is_free, _CANDIDATES), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
