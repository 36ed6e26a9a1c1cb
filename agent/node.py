"""One node: its loops, wired; a process hosts one or a thousand of them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.core.config import Config
from agent.core.events import STARTING
from agent.core.model import Object
from agent.loops.csinode import CSINodeLoop
from agent.loops.events import EventLoop
from agent.loops.farewell import Farewell
from agent.loops.lease import LeaseLoop
from agent.loops.membership import Membership
from agent.loops.observe import Observer
from agent.loops.ownnode import OwnNode
from agent.loops.readiness import Readiness
from agent.loops.register import Registrar
from agent.loops.sensors import SensorLoop
from agent.loops.status import StatusLoop
from agent.loops.watch import WatchLoop
from agent.loops.weather import Weather
from agent.ports import Clock, CSINodeApi, EventApi, Host, LeaseApi, NodeApi, Rand, WatchApi


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
    own_node: WatchApi


class Node:
    """A node and the loops that keep it true and alive."""

    def __init__(
        self,
        *,
        config: Config,
        host: Host,
        lanes: Lanes,
        clock: Clock,
        weather: Weather | None = None,
        rand: Rand = random.random,
    ) -> None:
        self._config, self._host, self._lanes, self._clock, self._rand = config, host, lanes, clock, rand
        self._weather = weather or Weather(clock, rand)
        self._readiness = Readiness()
        wake = self._readiness.changed.set
        self._membership = Membership(node_name=config.node_name, registration=config.registration, wake=wake)
        self._own = OwnNode(membership=self._membership, wake=wake)
        self._observer = Observer(config=config, host=host, readiness=self._readiness, clock=clock)
        self.voice = EventLoop(node_name=config.node_name, events=lanes.events, weather=self._weather, clock=clock)
        self.loops: Sequence[Loop] = (self._lease(), self._csinode(), self._status(), self._sensors(), self._watch())

    def start(self) -> None:
        """Say that the node starts; its loops are run by the supervisor."""
        self.voice.record(STARTING)

    def addresses(self) -> Sequence[Object]:
        """The addresses that the Node tells, as far as they are known."""
        found: Sequence[Object] = (self._own.node or {}).get("status", {}).get("addresses") or ()
        return found

    async def last_words(self) -> None:
        """What is to be said when the loops have ended: events under way, and farewell where that is wanted."""
        await self.voice.drained()
        if self._config.registration.deregister:
            await Farewell(node_name=self._config.node_name, nodes=self._lanes.nodes, leases=self._lanes.leases).say()

    def _lease(self) -> Loop:
        return LeaseLoop(
            config=self._config,
            leases=self._lanes.leases,
            nodes=self._lanes.lease_nodes,
            membership=self._membership,
            weather=self._weather,
            clock=self._clock,
            rand=self._rand,
        )

    def _csinode(self) -> Loop:
        return CSINodeLoop(
            node_name=self._config.node_name,
            csinodes=self._lanes.csinodes,
            readiness=self._readiness,
            membership=self._membership,
            weather=self._weather,
        )

    def _status(self) -> Loop:
        return StatusLoop(
            config=self._config,
            nodes=self._lanes.status_nodes,
            observer=self._observer,
            readiness=self._readiness,
            registrar=self._registrar(),
            own=self._own,
            membership=self._membership,
            weather=self._weather,
            events=self.voice,
            clock=self._clock,
            rand=self._rand,
        )

    def _registrar(self) -> Registrar:
        return Registrar(
            node_name=self._config.node_name,
            nodes=self._lanes.nodes,
            observer=self._observer,
            events=self.voice,
            own=self._own,
            membership=self._membership,
            weather=self._weather,
        )

    def _sensors(self) -> Loop:
        return SensorLoop(
            eviction=self._config.eviction, observer=self._observer, readiness=self._readiness, clock=self._clock
        )

    def _watch(self) -> Loop:
        return WatchLoop(
            kind="*v1.Node", source=self._lanes.own_node, copy=self._own, clock=self._clock, weather=self._weather
        )
