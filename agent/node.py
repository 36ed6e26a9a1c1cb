"""One node: its loops, wired; a process hosts one or a thousand of them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.controllers.csinode import CSINodeController
from agent.controllers.lease import LeaseController
from agent.controllers.registration import Registration
from agent.controllers.status import StatusController
from agent.core.config import Config
from agent.core.events import STARTING
from agent.core.model import Object
from agent.core.pods.info import PodCounts, PodInfo
from agent.core.portrait import Portrait
from agent.core.schedule import Pace
from agent.core.tally import Family, Tally
from agent.loops.events import EventLoop
from agent.loops.eviction import EvictionLoop
from agent.loops.farewell import Farewell
from agent.loops.membership import Membership
from agent.loops.notify import Vitals
from agent.loops.observe import Observer
from agent.loops.ownnode import OwnNode
from agent.loops.pods import PodLoop
from agent.loops.podshutdown import kill_pods_by_priority
from agent.loops.podstore import PodStore
from agent.loops.portrait import portrait
from agent.loops.pulse import Pulse
from agent.loops.readiness import Readiness
from agent.loops.sensors import SensorLoop
from agent.loops.shutdown import Departure
from agent.loops.startup import Startup
from agent.loops.staticpods import StaticPodLoop
from agent.loops.watch import WatchLoop
from agent.loops.weather import Weather
from agent.machinery.health import Beat
from agent.machinery.isolation import LOOP_MOST_SECONDS, Isolation, Pauses
from agent.machinery.runner import Controller, Runner
from agent.machinery.workqueue import WorkQueue
from agent.ports import Clock, CSINodeApi, EventApi, Host, LeaseApi, ManifestSource, NodeApi, PodApi, Rand, WatchApi

_WORKERS = 4  # a request that hangs holds up one of them
_LEASE_FIRST_SECONDS, _LEASE_MOST_SECONDS = 0.2, 7.0


class Loop(Protocol):
    """Something that runs until it is cancelled, or until its work is done."""

    async def run(self) -> None:
        """Run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLanes:
    """The API server as the pods of one node use it: however many they are, nothing else waits for them."""

    pods: PodApi
    own_pods: WatchApi
    events: EventApi
    manifests: ManifestSource | None = None  # of static pods


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
    pods: PodLanes | None = None  # None: pods are none of our business


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
        pulse: Pulse | None = None,
        startup: Startup | None = None,
        rand: Rand = random.random,
    ) -> None:
        self._config, self._host, self._lanes, self._clock, self._rand = config, host, lanes, clock, rand
        self._weather = weather or Weather(clock, rand)
        self._lease_queue: WorkQueue[Controller] = WorkQueue(clock)
        self._queue: WorkQueue[Controller] = WorkQueue(clock)
        self.pulse = pulse or Pulse(config, clock)
        self._startup = startup or Startup(clock)
        self._readiness = Readiness()
        wake = self._readiness.changed
        self._membership = Membership(node_name=config.node_name, registration=config.registration, wake=wake)
        self._own = OwnNode(membership=self._membership, wake=wake)
        self._observer = Observer(config=config, host=host, readiness=self._readiness, clock=clock)
        self._pace = Pace(config.heartbeat.events_per_second, config.heartbeat.events_at_once)
        self._unexpected = self.pulse.unexpected
        self.voice = EventLoop(
            node_name=config.node_name,
            events=lanes.events,
            weather=self._weather,
            clock=clock,
            pace=self._pace,
            isolation=self._isolation("events"),
        )
        self.departure = Departure(
            readiness=self._readiness,
            own=self._own,
            events=self.voice,
            clock=clock,
            end_pods=self._end_pods,
            isolation=self._isolation("shutdown"),
        )
        status, watch = self._status(), self._watch()
        self._tallies: list[Tally] = [
            status.reports,
            watch.restarts,
            self.voice.outcomes,
            self.departure.began,
            self.departure.ended,
        ]
        self._pods: PodLoop | None = None
        pulse, isolated = self.pulse, self._unexpected.isolated
        lease = Runner("lease", self._lease_queue)
        for controller in (self._lease(), self._csinode(), status):
            controller.start()
        self.loops: Sequence[Loop] = (
            lease,
            Runner("node", self._queue, workers=_WORKERS),
            isolated("sensors", self._sensors().run, pulse.sensors),
            isolated("watch", watch.run, pulse.watch),
            *(self._tending(lanes.pods) if lanes.pods else ()),
        )
        # These two end last: the node is alive, and can be heard, until there is nothing more to say.
        self.lasting: Sequence[Loop] = (lease, isolated("events", self.voice.run, pulse.others["events"]))

    def start(self) -> None:
        """Say that the node starts; its loops are run by the supervisor."""
        self.pulse.begin()
        self.voice.record(STARTING)

    def addresses(self) -> Sequence[Object]:
        """The addresses that the Node tells, as far as they are known."""
        found: Sequence[Object] = (self._own.node or {}).get("status", {}).get("addresses") or ()
        return found

    def pods(self) -> Iterator[bytes]:
        """The pods that are bound to the node, as far as they are its business, each as JSON."""
        return self._pods.store.encoded() if self._pods else iter(())

    def pod(self, namespace: str, name: str) -> Object | None:
        """One of them."""
        cached = self._pods.store.by_name(namespace, name) if self._pods else None
        return cached.decode() if cached else None

    def pod_infos(self) -> Sequence[PodInfo]:
        """What metrics and figures need of them."""
        return self._pods.store.infos() if self._pods else ()

    def pod_counts(self) -> PodCounts:
        """How many of them run, and their containers by state."""
        return self._pods.store.counts if self._pods else PodCounts()

    async def _end_pods(self) -> None:
        if self._pods:
            periods = self._config.shutdown.grace_periods
            await kill_pods_by_priority(self._pods, periods=periods, clock=self._clock)

    def vitals(self) -> Vitals:
        """How the node is doing, for whoever watches over the process."""
        return Vitals(
            node=self._own.node, lease_age_seconds=self.pulse.lease.renewal_age_seconds, stalls=self.pulse.stalls()
        )

    def portrait(self) -> Portrait:
        """The node for people to look at."""
        return portrait(self._config, own=self._own, observer=self._observer, pulse=self.pulse, clock=self._clock)

    def families(self) -> Iterator[Family]:
        """What the loops have counted and measured."""
        yield from self.pulse.families()
        yield from self._startup.families()
        for tally in self._tallies:
            yield tally.family()

    async def last_words(self) -> None:
        """What is to be said when the loops have ended: farewell where that is wanted, then events under way."""
        if self._config.registration.deregister:
            with self._isolation("shutdown").attempt():
                nodes, leases = self._lanes.nodes, self._lanes.leases
                await Farewell(node_name=self._config.node_name, nodes=nodes, leases=leases).say()
        await self.voice.drained()

    def _isolation(self, loop: str) -> Isolation:
        return self._unexpected.isolation(loop, self.pulse.others[loop])

    def _controller_isolation(self, name: str, beat: Beat) -> Isolation:
        return self._unexpected.isolation(name, beat, pauses=Pauses(most_seconds=LOOP_MOST_SECONDS))

    def _lease_pauses(self) -> Pauses:
        """As a kubelet's for a lease that it cannot ensure, and never longer than the pause between two renewals."""
        most = min(_LEASE_MOST_SECONDS, self._config.heartbeat.lease_renew_seconds)
        return Pauses(min(_LEASE_FIRST_SECONDS, most), most)

    def _tending(self, lanes: PodLanes) -> Sequence[Loop]:
        """What pods need: somebody who tends them, a watch that tells of them, and a voice of their own."""
        name, clock, weather = self._config.node_name, self._clock, self._weather
        voice = EventLoop(
            node_name=name,
            events=lanes.events,
            weather=weather,
            clock=clock,
            pace=self._pace,
            outcomes=self.voice.outcomes,
            isolation=self._isolation("events"),
        )
        store = PodStore()
        static = self._static_pods(lanes, store)
        self._pods = PodLoop(
            config=self._config,
            pods=lanes.pods,
            nodes=self._lanes.nodes,
            store=store,
            static=static,
            own=self._own,
            observer=self._observer,
            readiness=self._readiness,
            events=voice,
            clock=clock,
            beat=self.pulse.pod_workers,
            unexpected=self._unexpected,
        )
        watch = WatchLoop(
            kind="*v1.Pod",
            source=lanes.own_pods,
            copy=self._pods,
            clock=clock,
            weather=weather,
            is_scout=False,
            beat=self.pulse.pods,
            isolation=self._unexpected.isolation("pods"),
        )
        self._tallies.append(watch.restarts)
        eviction = EvictionLoop(
            eviction=self._config.eviction,
            observer=self._observer,
            pods=self._pods.store.running,
            kill=self._pods.kill,
            events=self.voice,
            clock=clock,
        )
        others, isolated = self.pulse.others, self._unexpected.isolated
        return (
            isolated("pods", self._pods.run, self.pulse.pod_workers),
            isolated("pods", watch.run, self.pulse.pods),
            isolated("events", voice.run, others["events"]),
            isolated("eviction", eviction.run, others["eviction"]),
            *([isolated("staticpods", static.run, others["staticpods"])] if static else []),
        )

    def _static_pods(self, lanes: PodLanes, store: PodStore) -> StaticPodLoop | None:
        if lanes.manifests is None:
            return None
        return StaticPodLoop(
            source=lanes.manifests,
            pods=lanes.pods,
            store=store,
            own=self._own,
            clock=self._clock,
            check_seconds=self._config.pods.manifest_check_seconds,
            isolation=self._unexpected.isolation("staticpods"),
        )

    def _lease(self) -> LeaseController:
        return LeaseController(
            config=self._config,
            leases=self._lanes.leases,
            nodes=self._lanes.lease_nodes,
            membership=self._membership,
            weather=self._weather,
            clock=self._clock,
            isolation=self._unexpected.isolation("lease", self.pulse.lease, pauses=self._lease_pauses()),
            queue=self._lease_queue,
            beat=self.pulse.lease,
            rand=self._rand,
        )

    def _csinode(self) -> CSINodeController:
        return CSINodeController(
            node_name=self._config.node_name,
            csinodes=self._lanes.csinodes,
            readiness=self._readiness,
            membership=self._membership,
            weather=self._weather,
            clock=self._clock,
            isolation=self._controller_isolation("csinode", self.pulse.csinode),
            queue=self._queue,
            beat=self.pulse.csinode,
            rand=self._rand,
        )

    def _status(self) -> StatusController:
        return StatusController(
            config=self._config,
            nodes=self._lanes.status_nodes,
            observer=self._observer,
            readiness=self._readiness,
            registration=self._registration(),
            own=self._own,
            membership=self._membership,
            weather=self._weather,
            events=self.voice,
            clock=self._clock,
            isolation=self._controller_isolation("status", self.pulse.status),
            queue=self._queue,
            beat=self.pulse.status,
            startup=self._startup,
            rand=self._rand,
        )

    def _registration(self) -> Registration:
        return Registration(
            node_name=self._config.node_name,
            nodes=self._lanes.nodes,
            observer=self._observer,
            events=self.voice,
            own=self._own,
            membership=self._membership,
            clock=self._clock,
            beat=self.pulse.status,
            startup=self._startup,
            rand=self._rand,
        )

    def _sensors(self) -> Loop:
        return SensorLoop(
            eviction=self._config.eviction,
            observer=self._observer,
            readiness=self._readiness,
            clock=self._clock,
            beat=self.pulse.sensors,
        )

    def _watch(self) -> WatchLoop:
        return WatchLoop(
            kind="*v1.Node",
            source=self._lanes.own_node,
            copy=self._own,
            clock=self._clock,
            weather=self._weather,
            beat=self.pulse.watch,
            isolation=self._unexpected.isolation("watch"),
        )
