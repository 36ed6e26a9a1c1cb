"""Free loopback ports; `python -m tests.cluster.ports` prints one."""

import itertools
import secrets
import socket
import sys
from collections import deque

# Below the range from which Linux gives ports to outgoing connections: a port found free there can be taken a moment
# later by any client on the machine. In turn, so that nobody gets what another was given and does not listen on yet.
_RANGE = range(20000, 32000)
_CANDIDATES = itertools.cycle(secrets.SystemRandom().sample(_RANGE, len(_RANGE)))
# The same for other processes that run tests on this machine: whoever was given a TCP port holds the UDP port of the
# same number, which no server of ours wants, and which the kernel takes back when the process ends.
_CLAIMS: deque[socket.socket] = deque()
_MOST_CLAIMS = 200  # the oldest ports have been listened on by then


def free_ports(count: int) -> list[int]:
    """As many different loopback ports as asked for, on which nobody listens, and which nobody else was given."""
    return list(itertools.islice(filter(lambda port: _is_free(port) and _is_claimed(port), _CANDIDATES), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _is_claimed(port: int) -> bool:
    """Whether the port is ours from now on."""
    claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        claim.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _CLAIMS.append(claim)
    if len(_CLAIMS) > _MOST_CLAIMS:
        _CLAIMS.popleft().close()
    return True


if __name__ == "__main__":  # for the labs in docs/
    sys.stdout.write(f"{free_ports(1)[0]}\n")
