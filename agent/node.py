"""One node: its state and its controllers. A process hosts one of them, or thousands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.controllers.csinode import CSINodeController
from agent.controllers.host_monitor import HostMonitor
from agent.controllers.lease import LeaseController
from agent.controllers.registration import Registration
from agent.controllers.startup import StartupLatency
from agent.controllers.state import NodeState
from agent.controllers.status import StatusController
from agent.core.config import Config
from agent.core.events import STARTING
from agent.core.model import Object
from agent.core.pods.info import PodCounts, PodInfo
from agent.core.portrait import Portrait
from agent.core.schedule import Pace
from agent.loops.eviction import EvictionLoop
from agent.loops.farewell import Farewell
from agent.loops.notify import Vitals
from agent.loops.pods import PodLoop
from agent.loops.podshutdown import kill_pods_by_priority
from agent.loops.podstore import PodStore
from agent.loops.portrait import portrait
from agent.loops.shutdown import Departure
from agent.loops.staticpods import StaticPodLoop
from agent.machinery.dependencies import Dependencies
from agent.machinery.health import RECONNECT_SECONDS, HealthRegistry
from agent.machinery.recorder import EventRecorder
from agent.machinery.runner import Controller, Runnable
from agent.machinery.workqueue import WorkQueue
from agent.ports import CSINodeApi, EventApi, LeaseApi, ManifestSource, NodeApi, PodApi

_ROUNDS = 3.0  # how many rounds a loop may miss


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClients:
    """The API server as the pods of one node use it: however many they are, nothing else waits for them."""

    pods: PodApi
    events: EventApi
    manifests: ManifestSource | None = None  # of static pods


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClients:
    """The API server as one node uses it: heartbeats have connections that nothing else can block."""

    nodes: NodeApi  # registration, and whatever is not a heartbeat
    status_nodes: NodeApi
    lease_nodes: NodeApi
    leases: LeaseApi
    csinodes: CSINodeApi
    events: EventApi
    pods: PodClients | None = None  # None: pods are ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What all nodes of a process share; `Process` owns it."""

    dependencies: Dependencies
    health: HealthRegistry
    monitor: HostMonitor
    startup: StartupLatency
    lease_queue: WorkQueue[Controller]  # nothing else can delay a renewal
    queue: WorkQueue[Controller]
    event_queue: WorkQueue[Controller]


class Node:
    """A node and the controllers that keep its objects true."""

    def __init__(self, config: Config, clients: NodeClients, engine: Engine) -> None:
        self._config = config
        self._clients = clients
        self._engine = engine
        dependencies, name = engine.dependencies, config.node_name
        lease_seconds = float(config.heartbeat.lease_duration_seconds)
        reconnect_seconds = max(lease_seconds, RECONNECT_SECONDS)
        # The cluster gives the node up when the lease is over, so that is when /healthz turns red, too.
        self.lease_health = engine.health.lease(
            deadline_seconds=lease_seconds, period_seconds=config.heartbeat.lease_renew_seconds, node_name=name
        )
        self._status_health = engine.health.loop(
            "status",
            deadline_seconds=max(lease_seconds, _ROUNDS * config.heartbeat.status_update_seconds),
            node_name=name,
        )
        csinode_health = engine.health.loop("csinode", deadline_seconds=reconnect_seconds, node_name=name)
        self._pods_health = engine.health.loop("pods", deadline_seconds=reconnect_seconds, node_name=name)
        self.state = NodeState(config, engine.monitor, engine.startup, dependencies.clock)
        self._pace = Pace(config.heartbeat.events_per_second, config.heartbeat.events_at_once)
        self.events = self._recorder(clients.events)
        registration = Registration(
            self.state, clients.nodes, self.events, dependencies=dependencies, health=self._status_health
        )
        self._controllers = (
            LeaseController(
                self.state,
                leases=clients.leases,
                nodes=clients.lease_nodes,
                queue=engine.lease_queue,
                dependencies=dependencies,
                health=self.lease_health,
            ),
            CSINodeController(
                self.state, clients.csinodes, queue=engine.queue, dependencies=dependencies, health=csinode_health
            ),
            StatusController(
                self.state,
                nodes=clients.status_nodes,
                registration=registration,
                events=self.events,
                queue=engine.queue,
                dependencies=dependencies,
                health=self._status_health,
            ),
        )
        self.departure = Departure(
            state=self.state,
            events=self.events,
            clock=dependencies.clock,
            end_pods=self._end_pods,
            isolation=dependencies.unexpected.isolation("shutdown", engine.health.failures_only("shutdown")),
            metrics=dependencies.metrics,
        )
        self.pod_loop: PodLoop | None = None
        self.tasks: Sequence[Runnable] = self._pod_tasks(clients.pods) if clients.pods else ()

    def start(self) -> None:
        """Have the controllers called from now on."""
        self.lease_health.begin()
        self._status_health.begin()
        for controller in self._controllers:
            controller.start()
        self.events.record(STARTING)

    async def drain(self) -> None:
        """Deregister where that is wanted, and send the events that wait."""
        if self._config.registration.deregister:
            shutdown = self._engine.health.failures_only("shutdown")
            with self._engine.dependencies.unexpected.isolation("shutdown", shutdown).attempt():
                nodes, leases = self._clients.nodes, self._clients.leases
                await Farewell(node_name=self._config.node_name, nodes=nodes, leases=leases).say()
        await self.events.drained()

    def addresses(self) -> Sequence[Object]:
        """The addresses that the Node reports, as far as they are known."""
        addresses: Sequence[Object] = (self.state.node or {}).get("status", {}).get("addresses") or ()
        return addresses

    def pods(self) -> Iterator[bytes]:
        """The pods that are bound to the node, unless they are ignored, each as JSON."""
        return self.pod_loop.store.encoded() if self.pod_loop else iter(())

    def pod(self, namespace: str, name: str) -> Object | None:
        """One of them."""
        cached = self.pod_loop.store.by_name(namespace, name) if self.pod_loop else None
        return cached.decode() if cached else None

    def pod_infos(self) -> Sequence[PodInfo]:
        """What metrics and figures need of them."""
        return self.pod_loop.store.infos() if self.pod_loop else ()

    def pod_counts(self) -> PodCounts:
        """How many of them run, and their containers by state."""
        return self.pod_loop.store.counts if self.pod_loop else PodCounts()

    def vitals(self) -> Vitals:
        """How the node is doing, for the service manager."""
        return Vitals(
            node=self.state.node,
            lease_age_seconds=self.lease_health.renewal_age_seconds,
            stalls=self._engine.health.stalls(),
        )

    def portrait(self) -> Portrait:
        """The node for people to look at."""
        return portrait(
            self.state, lease=self.lease_health, health=self._engine.health, clock=self._engine.dependencies.clock
        )

    async def _end_pods(self) -> None:
        if self.pod_loop:
            periods = self._config.shutdown.grace_periods
            await kill_pods_by_priority(self.pod_loop, periods=periods, clock=self._engine.dependencies.clock)

    def _recorder(self, events: EventApi) -> EventRecorder:
        return EventRecorder(
            self._config.node_name,
            events,
            pace=self._pace,
            queue=self._engine.event_queue,
            dependencies=self._engine.dependencies,
            health=self._engine.health.failures_only("events"),
        )

    def _pod_tasks(self, clients: PodClients) -> Sequence[Runnable]:
        """What pods need: a loop that keeps their statuses true, evictions and static pods."""
        clock, unexpected = self._engine.dependencies.clock, self._engine.dependencies.unexpected
        store, static = PodStore(), None
        if clients.manifests:
            static = StaticPodLoop(
                source=clients.manifests,
                pods=clients.pods,
                store=store,
                state=self.state,
                clock=clock,
                check_seconds=self._config.pods.manifest_check_seconds,
                isolation=unexpected.isolation("staticpods"),
            )
        self.pod_loop = PodLoop(
            config=self._config,
            pods=clients.pods,
            nodes=self._clients.nodes,
            store=store,
            static=static,
            state=self.state,
            events=self._recorder(clients.events),
            clock=clock,
            health=self._pods_health,
            unexpected=unexpected,
        )
        eviction = EvictionLoop(
            eviction=self._config.eviction,
            pressure=self.state.pressure,
            pods=self.pod_loop.store.running,
            kill=self.pod_loop.kill,
            events=self.events,
            clock=clock,
        )
        loops = {"eviction": eviction.run} | ({"staticpods": static.run} if static else {})
        return (
            unexpected.isolated("pods", self.pod_loop.run, self._pods_health),
            *(unexpected.isolated(name, run, self._engine.health.failures_only(name)) for name, run in loops.items()),
        )
