"""One node: its state and its controllers. A process hosts one of them, or thousands."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from agent.controllers.csinode import CSINodeController
from agent.controllers.eviction import EvictionController
from agent.controllers.host_monitor import HostMachine, HostMonitor, Machine
from agent.controllers.lease import LeaseController
from agent.controllers.notify import NodeSummary
from agent.controllers.pods import PodController, PodQueue, is_crowded
from agent.controllers.registration import NodeRegistrar, deregister
from agent.controllers.shutdown import GracefulShutdown, kill_pods_by_priority
from agent.controllers.startup import StartupLatency
from agent.controllers.state import NodeDecoder, NodeState
from agent.controllers.static_pods import StaticPodController
from agent.controllers.status import StatusController
from agent.core.config import NodeConfig
from agent.core.events import STARTING
from agent.core.model import NodeAddress, NodeStatus, PodObject
from agent.core.node_view import LoopFailure, NodeView, condition_rows, resource_rows
from agent.core.pods.info import PodCounts, PodInfo
from agent.core.schedule import TokenBucket
from agent.machinery.dependencies import Dependencies
from agent.machinery.health import RECONNECT_SECONDS, HealthRegistry, LoopHealth
from agent.machinery.isolation import Isolation
from agent.machinery.recorder import EventRecorder
from agent.machinery.runner import Controller, Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.ports import CSINodeApi, EventApi, LeaseApi, ManifestSource, NodeApi, PodApi

_ROUNDS = 3.0  # how many rounds a loop may miss
_CROWD = 8  # while so many registrations and statuses wait, nodes come up, and events about them can wait, too


class _Startable(Controller, Protocol):
    def start(self) -> None: ...


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
    node_decoder: NodeDecoder
    lease_queue: WorkQueue[Controller]  # nothing else can delay a renewal
    queue: WorkQueue[Controller]
    event_queue: WorkQueue[Controller]
    pod_queue: PodQueue
    on_node_deleted: Callable[[str], None]
    """Called with the name of a node whose Node was deleted for good."""

    def scheduling(
        self, loop: str, health: LoopHealth | None = None, queue: WorkQueue[Controller] | None = None
    ) -> Scheduling:
        """Return the scheduling of a controller of this loop; without a health, only unexpected errors count."""
        return Scheduling(
            loop=loop,
            queue=queue or self.queue,
            dependencies=self.dependencies,
            health=health or self.health.failures_only(loop),
        )


class Node:
    """A node and the controllers that keep its objects true."""

    def __init__(
        self,
        config: NodeConfig,
        clients: NodeClients,
        engine: Engine,
        *,
        machine: Machine | None = None,
        lease_phase: float = 1.0,
    ) -> None:
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
        machine = machine or HostMachine(engine.monitor, config.eviction)
        self.state = NodeState(config, machine, engine.startup, engine.node_decoder, dependencies.clock)
        self._pace = TokenBucket(config.heartbeat.events_per_second, config.heartbeat.events_at_once)
        self.events = self._recorder(clients.events, gives_way=partial(engine.queue.has_due, _CROWD))
        status_scheduling = engine.scheduling("status", self._status_health)
        registration = NodeRegistrar(self.state, clients.nodes, self.events, status_scheduling)
        self._controllers: list[_Startable] = [
            LeaseController(
                self.state,
                leases=clients.leases,
                nodes=clients.lease_nodes,
                scheduling=engine.scheduling("lease", self.lease_health, engine.lease_queue),
                phase=lease_phase,
            ),
            CSINodeController(self.state, clients.csinodes, scheduling=engine.scheduling("csinode", csinode_health)),
            StatusController(
                self.state,
                nodes=clients.status_nodes,
                registration=registration,
                events=self.events,
                scheduling=status_scheduling,
                on_deleted=engine.on_node_deleted,
            ),
        ]
        self.pod_controller = self._host_pods(clients.pods) if clients.pods else None
        self.shutdown = GracefulShutdown(
            state=self.state,
            events=self.events,
            clock=dependencies.clock,
            end_pods=self._end_pods,
            isolation=self._shutdown_isolation(),
            metrics=dependencies.metrics,
        )

    @property
    def name(self) -> str:
        """The name of its Node."""
        return self._config.node_name

    @property
    def is_up(self) -> bool:
        """Whether the node has a lease, and is ready unless something keeps it from that for good."""
        has_lease = self.lease_health.renewal_age_seconds is not None
        return has_lease and (self.state.ready_status == "True" or self.state.is_held_back)

    def start(self) -> None:
        """Have the controllers called from now on."""
        self.lease_health.begin()
        self._status_health.begin()
        for controller in self._controllers:
            controller.start()
        self.events.record(STARTING)

    def stop(self) -> None:
        """Have no controller called any more; the events that wait are still sent."""
        self.state.stop()
        for controller in self._controllers:
            self._engine.lease_queue.retire(controller)
            self._engine.queue.retire(controller)
        if self.pod_controller:
            self.pod_controller.stop()

    async def drain(self) -> None:
        """Deregister where that is wanted, and send the events that wait."""
        if self._config.registration.deregister:
            with self._shutdown_isolation().attempt():
                await deregister(self.state.name, nodes=self._clients.nodes, leases=self._clients.leases)
        await self.events.drained()

    def addresses(self) -> Sequence[NodeAddress]:
        """The addresses that the Node reports; none while there is no Node."""
        node = self.state.node()
        return node.get("status", {}).get("addresses") or () if node else ()

    def pods(self) -> Iterator[bytes]:
        """The pods that are bound to the node, unless they are ignored, each as JSON."""
        return self.pod_controller.store.encoded() if self.pod_controller else iter(())

    def pod(self, namespace: str, name: str) -> PodObject | None:
        """One of them."""
        cached = self.pod_controller.store.by_name(namespace, name) if self.pod_controller else None
        return cached.decode() if cached else None

    def has_pod(self, namespace: str, name: str) -> bool:
        """Whether a pod of this name is bound to the node."""
        return self.pod_controller is not None and self.pod_controller.store.by_name(namespace, name) is not None

    def pod_infos(self) -> Sequence[PodInfo]:
        """What metrics and figures need of them."""
        return self.pod_controller.store.infos() if self.pod_controller else ()

    def pod_counts(self) -> PodCounts:
        """How many of them run, and their containers by state."""
        return self.pod_controller.store.counts if self.pod_controller else PodCounts()

    def summary(self) -> NodeSummary:
        """The node as the service manager sees it."""
        return NodeSummary(
            node=self.state.node(),
            lease_age_seconds=self.lease_health.renewal_age_seconds,
            stalls=self._engine.health.stalls(),
        )

    def view(self) -> NodeView:
        """The node for people to look at."""
        config, node, lease = self._config, self.state.node(), self.lease_health
        status: NodeStatus = node.get("status", {}) if node else {}
        failure, now = self._engine.health.last_failure(), self._engine.dependencies.clock.monotonic()
        return NodeView(
            node_name=config.node_name,
            version=config.kubelet_version,
            node=node,
            conditions=condition_rows(config, status, self.state.pressure.signals),
            resources=resource_rows(status),
            renewals=lease.history(),
            renew_seconds=lease.period_seconds,
            lease_seconds=lease.deadline_seconds,
            lease_age_seconds=lease.renewal_age_seconds,
            missed=lease.missed,
            faults=self._engine.health.faults(),
            last_trouble=failure and LoopFailure(now - failure.at_seconds, failure.loop, failure.reason),
        )

    async def _end_pods(self) -> None:
        if self.pod_controller:
            periods = self._config.shutdown.grace_periods
            await kill_pods_by_priority(self.pod_controller, periods=periods, clock=self._engine.dependencies.clock)

    def _recorder(self, events: EventApi, gives_way: Callable[[], bool] = lambda: False) -> EventRecorder:
        return EventRecorder(
            self._config.node_name,
            events,
            pace=self._pace,
            scheduling=self._engine.scheduling("events", queue=self._engine.event_queue),
            gives_way=gives_way,
        )

    def _shutdown_isolation(self) -> Isolation:
        health = self._engine.health.failures_only("shutdown")
        return self._engine.dependencies.unexpected.isolation("shutdown", health)

    def _host_pods(self, clients: PodClients) -> PodController:
        """Build what pods need: a controller of their statuses, evictions and, where asked for, static pods."""
        engine = self._engine
        pods = PodController(
            self.state,
            clients.pods,
            nodes=self._clients.nodes,
            events=self._recorder(clients.events, gives_way=partial(is_crowded, engine.pod_queue)),
            queue=engine.pod_queue,
            dependencies=engine.dependencies,
            health=self._pods_health,
        )
        eviction = EvictionController(
            self.state,
            pods,
            events=self.events,
            scheduling=engine.scheduling("eviction"),
        )
        self._controllers.append(eviction)
        if clients.manifests:
            static_pods = StaticPodController(
                self.state,
                clients.pods,
                clients.manifests,
                pods.store,
                scheduling=engine.scheduling("staticpods"),
            )
            pods.follow(static_pods)
            self._controllers.append(static_pods)
        return pods
