"""One node: its loops, wired; a process hosts one or a thousand of them."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.core.config import Config
from agent.core.events import STARTING
from agent.loops.csinode import CSINodeLoop
from agent.loops.events import EventLoop
from agent.loops.lease import LeaseLoop
from agent.loops.observe import Observer
from agent.loops.readiness import Readiness
from agent.loops.register import Registrar
from agent.loops.sensors import SensorLoop
from agent.loops.status import StatusLoop
from agent.ports import Clock, CSINodeApi, EventApi, Host, LeaseApi, NodeApi, Rand


class Loop(Protocol):
    """Something that runs until it is cancelled, or until its work is done."""

    async def run(self) -> None:
        """Run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The API server as one node uses it: heartbeats have lanes that nothing else can block."""

    nodes: NodeApi  # registration, and whatever is not a heartbeat
    status_nodes: NodeApi
    lease_nodes: NodeApi
    leases: LeaseApi
    csinodes: CSINodeApi
    events: EventApi


class Node:
    """A node and the loops that keep it true and alive."""

    def __init__(self, *, config: Config, host: Host, lanes: Lanes, clock: Clock, rand: Rand = random.random) -> None:
        name, registered, readiness = config.node_name, asyncio.Event(), Readiness()
        if not config.registration.register_node:
            registered.set()  # somebody else sees to it
        self._events = EventLoop(node_name=name, events=lanes.events, clock=clock, rand=rand)
        observer = Observer(config=config, host=host, readiness=readiness, clock=clock)
        registrar = Registrar(
            node_name=name,
            nodes=lanes.nodes,
            observer=observer,
            events=self._events,
            registered=registered,
            clock=clock,
        )
        self.loops: Sequence[Loop] = (
            LeaseLoop(
                config=config,
                leases=lanes.leases,
                nodes=lanes.lease_nodes,
                registered=registered,
                clock=clock,
                rand=rand,
            ),
            CSINodeLoop(
                node_name=name,
                csinodes=lanes.csinodes,
                nodes=lanes.nodes,
                readiness=readiness,
                registered=registered,
                clock=clock,
            ),
            StatusLoop(
                config=config,
                nodes=lanes.status_nodes,
                observer=observer,
                readiness=readiness,
                registrar=registrar,
                events=self._events,
                clock=clock,
                rand=rand,
            ),
            SensorLoop(eviction=config.eviction, observer=observer, readiness=readiness, clock=clock),
            self._events,
        )

    def start(self) -> None:
        """Say that the node starts; its loops are run by the supervisor."""
        self._events.record(STARTING)
