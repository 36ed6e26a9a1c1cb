"""Where the nodes of a fleet serve the kubelet's API: on one port that they share, or on one port for each."""

import asyncio
import heapq
import logging
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agent.adapters.certificates.serving import ServingCertificate
from agent.adapters.credentials import Credentials
from agent.adapters.server.listener import Listener, listen
from agent.adapters.server.tls import Tls
from agent.adapters.settings.zpages import EMPTY, Zpages
from agent.core.config import ProcessConfig, Serving
from agent.core.fleet import NodePlan, reached_at
from agent.core.model import IPAddress
from agent.core.port_range import PortRange
from agent.kubelet_server import load_tls, stored_certificate
from agent.machinery.runner import Runnable
from agent.ports import Clock, StartError

if TYPE_CHECKING:
    from agent.adapters.server.http_protocol import Handler

    LoadHandler = Callable[[str], Handler]

log = logging.getLogger(__name__)

_ANY_PORT = _NO_PORT = 0
_TOGETHER = ""  # the name under which all nodes listen on one port
_OTHER_DESCRIPTORS = 512  # that the process needs beside a port for each node


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetServing:
    """Where a fleet is asked to serve the kubelet's API."""

    ports: PortRange | None = None  # None: all nodes share the port of the settings
    insists_on_port: bool = False  # whether somebody asked for that port, so that no other will do
    stores_certificate: bool = False  # whether a self-signed certificate goes to the directory of the settings
    pages: Zpages = EMPTY


class Placement(Protocol):
    """Decides where each node is reached."""

    def check(self, count: int) -> None:
        """Raise StartError if so many nodes cannot be placed."""

    def place(self, plan: NodePlan) -> NodePlan:
        """Return the plan with the port of the node, and its address. Raises StartError."""

    def withdraw(self, name: str) -> None:
        """Give the place of a node up."""


class NoServers:
    """Places nodes that serve nothing."""

    def check(self, _count: int) -> None:
        """Accept any number of nodes."""

    def place(self, plan: NodePlan) -> NodePlan:
        """Return the plan without a port."""
        return reached_at(plan, None, _NO_PORT, is_shared=False)

    def withdraw(self, _name: str) -> None:
        """Do nothing."""


class FleetListeners:
    """The ports of all nodes of a process, behind one serving certificate."""

    def __init__(self, certificate: ServingCertificate, clock: Clock) -> None:
        self._certificate = certificate
        self._clock = clock
        self._listeners: dict[str, Listener] = {}  # by the name of their node
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None  # while we run
        self._load_handler: LoadHandler | None = None
        certificate.on_change = self._drain  # the client CA that verified a connection may have changed, too

    def answer_with(self, load_handler: "LoadHandler") -> None:
        """Take the handler of a port from here, when somebody connects to it."""
        self._load_handler = load_handler

    def add(self, name: str, sock: socket.socket) -> None:
        """Accept the connections of this socket."""
        handler = partial(self._handler, name)
        self._listeners[name] = Listener(sock, handler, clock=self._clock, tls=lambda: self._certificate.context)
        self._start(name)

    def remove(self, name: str) -> None:
        """Close the port of a node."""
        listener = self._listeners.pop(name)
        if task := self._tasks.pop(name, None):
            task.cancel()
        listener.stop()

    async def run(self) -> None:
        """Accept connections until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for name in self._listeners:
                    self._start(name)
                await asyncio.Event().wait()
        finally:
            self._group = None

    async def close(self) -> None:
        """Close all ports and connections."""
        for listener in self._listeners.values():
            await listener.close()

    def _start(self, name: str) -> None:
        if self._group:
            self._tasks[name] = self._group.create_task(self._listeners[name].run(), name=f"listener {name}")

    def _handler(self, name: str) -> "Handler":
        if self._load_handler is None:
            raise RuntimeError("nobody has said what is served")
        return self._load_handler(name)

    def _drain(self) -> None:
        for listener in self._listeners.values():
            listener.drain()


class SharedPort:
    """Places all nodes at one port."""

    def __init__(self, port: int, address: IPAddress | None) -> None:
        self._port = port
        self._address = address

    def check(self, _count: int) -> None:
        """Accept any number of nodes."""

    def place(self, plan: NodePlan) -> NodePlan:
        """Return the plan with the port, and the address where the nodes are reached unless it has its own."""
        return reached_at(plan, self._address, self._port, is_shared=True)

    def withdraw(self, _name: str) -> None:
        """Do nothing: the others go on."""


class OwnPorts:
    """Places each node at a port of its own."""

    def __init__(
        self, ports: PortRange, listeners: FleetListeners, *, bind_address: str, address: IPAddress | None
    ) -> None:
        self._range = ports
        self._listeners = listeners
        self._bind_address = bind_address
        self._address = address
        self._free = list(range(ports.first, ports.last + 1))  # a heap
        self._ports: dict[str, int] = {}

    def check(self, count: int) -> None:
        """Raise StartError if there are fewer ports than nodes."""
        if count > self._range.size:
            raise StartError(f"--port-range {self._range} has {self._range.size} ports, and the fleet {count} nodes")

    def place(self, plan: NodePlan) -> NodePlan:
        """Return the plan with the first free port, on which we listen from now on. Raises StartError."""
        port, sock = self._listen()
        self._ports[plan.name] = port
        self._listeners.add(plan.name, sock)
        return reached_at(plan, self._address, port, is_shared=False)

    def withdraw(self, name: str) -> None:
        """Close the port of a node, for another one."""
        heapq.heappush(self._free, self._ports.pop(name))
        self._listeners.remove(name)

    def _listen(self) -> tuple[int, socket.socket]:
        _allow_descriptors(len(self._ports) + _OTHER_DESCRIPTORS)
        refusal: StartError | None = None
        while self._free:
            port = heapq.heappop(self._free)
            try:
                return port, listen(self._bind_address, port, flag="--port-range")
            except StartError as error:  # others have it, and may keep it
                refusal = error
        raise refusal or StartError(f"--port-range {self._range} has too few ports")


@dataclass(frozen=True, slots=True)
class FleetServers:
    """Where nodes are placed, and what serves them there."""

    placement: Placement
    listeners: FleetListeners
    trust: Tls  # to be given new credentials, for their CA
    loops: tuple[Runnable, ...]


async def open_servers(
    config: ProcessConfig, wanted: FleetServing, credentials: Credentials, address: IPAddress | None, clock: Clock
) -> FleetServers:
    """Listen where all nodes listen; clients find us at this address. Raises StartError if that fails."""
    tls = await load_tls(config.serving, credentials)
    in_memory = not wanted.stores_certificate
    certificate, loop = await stored_certificate(
        config.certificates, tls, clock, host=socket.gethostname(), in_memory=in_memory
    )
    listeners = FleetListeners(certificate, clock)
    placement: Placement
    if wanted.ports:
        placement = OwnPorts(wanted.ports, listeners, bind_address=config.serving.address, address=address)
    else:
        sock = _listen_together(config.serving, insists_on_port=wanted.insists_on_port)
        listeners.add(_TOGETHER, sock)
        placement = SharedPort(sock.getsockname()[1], address)
    return FleetServers(placement, listeners, tls, (listeners, loop))


def _listen_together(serving: Serving, *, insists_on_port: bool) -> socket.socket:
    try:
        return listen(serving.address, serving.port, flag="--port")
    except StartError:
        if insists_on_port:
            raise
    sock = listen(serving.address, _ANY_PORT, flag="--port")
    log.info("Others have the kubelet's port, using another", {"taken": serving.port, "port": sock.getsockname()[1]})
    return sock


def _allow_descriptors(count: int) -> None:
    """Raise the limit of open files to this if it is lower and may be raised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
