"""Connections that cost their client next to nothing: silent ones, half-said ones, and some that stop after TLS."""

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cluster.api import unchecked_tls

_CONNECT_SECONDS = 2.0
_ADDRESSES = 200  # of loopback that they come from, so that they are no crowd from one address


def client_hello() -> bytes:
    """The first words of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = unchecked_tls().wrap_bio(incoming, outgoing)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


class Crowd:
    """Comes to one port, in every one of its ways in turn, and stays."""

    def __init__(self, port: int, *, is_tls: bool) -> None:
        self._port, self._tls, self._held = port, unchecked_tls(), list[socket.socket]()
        hello = client_hello() if is_tls else b"GET /healthz HTTP/1.1\r\nHost: n\r\n\r\n"
        self._ways: Sequence[Callable[[socket.socket], object]] = (
            lambda _: None,
            lambda connection: connection.close(),
            lambda _: None,
            lambda connection: connection.sendall(hello[:1]),
            lambda _: None,
            lambda connection: connection.sendall(hello[: len(hello) // 2]),
            lambda connection: connection.sendall(b"\0" * 64),
            lambda connection: connection.sendall(hello),
            self._shake_hands if is_tls else lambda connection: connection.sendall(hello[:-2]),
            lambda connection: connection.shutdown(socket.SHUT_WR),
        )

    def come(self, count: int, *, bare: bool = False) -> int:
        """Connect so often, one after another; how many of them the server has taken."""
        taken = 0
        for number in range(count):
            source = f"127.0.0.{2 + number % _ADDRESSES}"
            with suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", self._port), _CONNECT_SECONDS, (source, 0))
                self._held.append(connection)
                taken += 1
                if not bare:
                    self._ways[number % len(self._ways)](connection)
        return taken

    def leave(self) -> None:
        """Close all of them."""
        for connection in self._held:
            connection.close()
        self._held.clear()

    def _shake_hands(self, connection: socket.socket) -> None:
        self._held.append(self._tls.wrap_socket(connection))  # it takes the descriptor over


def resident_kib(pid: int, field: str = "VmRSS") -> int:
    """What the kernel says of the memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


@contextmanager
def peak(pid: int) -> Iterator[Callable[[], int]]:
    """The most KiB that were resident since the beginning of the block."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): resets VmHWM
    yield lambda: resident_kib(pid, "VmHWM")


def settled_kib(pid: int, *, within: float = 30.0) -> int:
    """The memory of an idle process, once it has not changed for five seconds."""
    deadline, seen = time.monotonic() + within, list[int]()
    while time.monotonic() < deadline and (len(seen) < 5 or len(set(seen[-5:])) > 1):
        seen.append(resident_kib(pid))
        time.sleep(1)
    return seen[-1]
