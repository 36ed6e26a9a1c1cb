"""A network namespace of a machine's own, with the API server of ours on its loopback."""

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.cluster.command import run
from tests.faults.proxy import FaultProxy

NODE_IP = "192.0.2.10"
_CLONE_NEWNET = 0x40000000


class Network(NamedTuple):
    """Where a machine is plugged in, and the cable to the API server, which can be cut."""

    namespace: str
    wire: FaultProxy


@contextmanager
def network(name: str, *, api_port: int) -> Iterator[Network]:
    """An interface with an address and a route that leads nowhere, and the API server at 127.0.0.1."""
    space = f"fk-{os.getpid()}-{name[-6:]}"
    run(["ip", "netns", "add", space])
    try:
        run(["ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"])
        run(["ip", "-n", space, "address", "add", f"{NODE_IP}/24", "dev", "eth0"])
        for link in ("lo", "eth0", "eth1"):
            run(["ip", "-n", space, "link", "set", link, "up"])
        run(["ip", "-n", space, "route", "add", "default", "via", "192.0.2.1"])
        listener = _listener(Path("/run/netns") / space, api_port)
        with FaultProxy(api_port, listener=listener) as wire:
            yield Network(space, wire)
    finally:
        run(["ip", "netns", "delete", space], check=False)


def _listener(namespace: Path, port: int) -> socket.socket:
    """A socket that listens on the loopback of another network namespace."""
    made: list[socket.socket] = []

    def listen() -> None:  # in a thread of its own, which alone moves there
        with namespace.open("rb") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        made.append(socket.create_server(("127.0.0.1", port)))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    return made[0]
