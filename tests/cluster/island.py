"""A network of its own for whatever runs on this machine as if it were another one."""

import ctypes
import os
import secrets
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.cluster.command import run
from tests.cluster.proxy import FaultProxy

ADDRESS = "192.0.2.10"
_CLONE_NEWNET = 0x40000000


class Island:
    """A network namespace with an interface, an address and a default route, and on its loopback the API server.

    Nothing leaves it but what goes through `wire`, which can be cut.
    """

    def __init__(self, api_port: int) -> None:
        self.name = f"fk-{os.getpid()}-{secrets.token_hex(3)}"
        self.path = Path("/run/netns") / self.name
        self._api_port = api_port
        self._life = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as life:
            run(["ip", "netns", "add", self.name])
            life.callback(lambda: run(["ip", "netns", "delete", self.name], check=False))
            self._ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
            self._ip("address", "add", f"{ADDRESS}/24", "dev", "eth0")
            for link in ("lo", "eth0", "eth1"):
                self._ip("link", "set", link, "up")
            self._ip("route", "add", "default", "via", "192.0.2.1")
            listener = _listener(self.path, self._api_port)
            self._wire = life.enter_context(FaultProxy(self._api_port, listener=listener))
            self._life = life.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._life.close()

    @property
    def wire(self) -> FaultProxy:
        """The only way out, to the API server."""
        return self._wire

    def _ip(self, *words: str) -> None:
        run(["ip", "-n", self.name, *words])


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
