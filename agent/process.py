"""What exists once per process, however many nodes it hosts: work queues, reflectors, host monitor, instruments."""

import logging
import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

import msgspec

from agent.controllers.host_monitor import DescribedMachine, HostMonitor
from agent.controllers.pods import PodWorkers
from agent.controllers.startup import StartupLatency
from agent.core.config import NodeConfig
from agent.core.metrics import Registry
from agent.core.model import HostSnapshot, NodeObject, PodObject
from agent.machinery.connectivity import Connectivity
from agent.machinery.dependencies import Dependencies
from agent.machinery.health import RECONNECT_SECONDS, HealthRegistry, NodeDetails
from agent.machinery.isolation import CONTROLLER_PAUSES, UnexpectedErrors
from agent.machinery.reflector import Demultiplexer, Reflector, Store
from agent.machinery.runner import Controller, Runnable, Runner
from agent.machinery.workqueue import WorkQueue
from agent.node import Engine, Node, NodeClients
from agent.ports import Clock, Host, NodeDeleted, Rand, WatchApi

log = logging.getLogger(__name__)

LOOPS = (
    *("lease", "status", "sensors", "watch", "csinode", "pods"),
    # These have nothing to report but errors that nobody expected.
    *("events", "eviction", "staticpods", "shutdown", "credentials", "certificates", "server", "notify"),
)
"""The loops whose health /healthz shows."""

_ROUNDS = 3.0  # how many readings the host monitor may miss
_SLACK_SECONDS = 20.0  # what a busy machine, and readings that hang, may add to one of them
# Workers for each node, up to a bound; a request that hangs holds up one of them
_LEASE_WORKERS, _WORKERS, _EVENT_WORKERS, _POD_WORKERS = 1, 4, 2, 8
_MOST_EVENT_WORKERS = 4  # nodes that start together must not wait for their events
_BEHIND, _BEHIND_SECONDS = 8, 2.0  # leases that wait for a worker; the cluster waits for 30 s longer
# As many connections to the API server for each purpose: 16, and more for thousands of nodes, as it may be far away
_MOST_WORKERS, _MOST_OF_ALL, _NODES_PER_WORKER = 16, 24, 20
_GOLDEN = 0.6180339887  # multiples of it spread over the unit interval, however many they are
_DECODED_NODES = 16  # those whose controllers were called last


class Process:
    """Hosts nodes: it drives their controllers, and passes on what the API server and the host show."""

    def __init__(
        self,
        host: Host,
        clock: Clock,
        *,
        sensor_seconds: float,
        node_name: str = "",
        booted_at: datetime | None = None,
        rand: Rand = random.random,
        details: NodeDetails = NodeDetails(),  # noqa: B008  it never changes
    ) -> None:
        self.metrics = Registry()
        self.health = HealthRegistry(clock, self.metrics, details)
        self.connectivity = Connectivity(clock, self.health.missed_renewals)
        self.unexpected = UnexpectedErrors(clock, self.metrics, node_name=node_name)
        self.dependencies = Dependencies(
            clock=clock,
            rand=rand,
            connectivity=self.connectivity,
            unexpected=self.unexpected,
            metrics=self.metrics,
        )
        self._sensor_seconds = sensor_seconds
        self._host_health = self.health.loop("sensors", deadline_seconds=_ROUNDS * sensor_seconds + _SLACK_SECONDS)
        self._host_queue: WorkQueue[Controller] = WorkQueue(clock)
        self.engine = Engine(
            dependencies=self.dependencies,
            health=self.health,
            monitor=HostMonitor(
                host,
                clock,
                interval_seconds=sensor_seconds,
                isolation=self.unexpected.isolation("sensors", self._host_health, pauses=CONTROLLER_PAUSES),
                health=self._host_health,
            ),
            startup=StartupLatency(clock, self.metrics, booted_at=booted_at),
            node_decoder=lru_cache(maxsize=_DECODED_NODES)(msgspec.json.decode),
            lease_queue=WorkQueue(clock),
            queue=WorkQueue(clock),
            event_queue=WorkQueue(clock),
            pod_queue=WorkQueue(clock),
            on_node_deleted=self._on_node_deleted,
        )
        self._node_store = Demultiplexer(_name, self.unexpected.isolation("watch"))
        self._pod_store = Demultiplexer(_node_name, self.unexpected.isolation("pods"))
        self._nodes: dict[str, Node] = {}
        self._added = 0  # nodes, ever
        self._lease_workers = Runner("lease", self.engine.lease_queue)
        self._event_workers = Runner("events", self.engine.event_queue)
        self._node_workers = Runner("node", self.engine.queue)
        self._pod_workers = PodWorkers("pods", self.engine.pod_queue)
        self._longest_lease_seconds = 0.0
        self._reflectors: list[Runnable] = []

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that are hosted, by name."""
        return self._nodes

    def add(self, config: NodeConfig, clients: NodeClients, machine: HostSnapshot | None = None) -> Node:
        """Host a further node, which shows this machine, or the host that we run on.

        `start` starts it with all the others; a node that is added later is started by itself.
        """
        described = DescribedMachine(machine, config.eviction, self.dependencies.clock) if machine else None
        node = Node(config, clients, self.engine, machine=described, lease_phase=self._next_lease_phase())
        self._nodes[config.node_name] = node
        self._scale_up()
        lease_seconds = float(config.heartbeat.lease_duration_seconds)
        self._longest_lease_seconds = max(self._longest_lease_seconds, lease_seconds)
        self._node_store.stores[config.node_name] = node.state
        if node.pod_controller:
            self._pod_store.stores[config.node_name] = node.pod_controller
        return node

    def remove(self, name: str) -> None:
        """Do not host a node any longer; its Node and Lease stay as they are."""
        self._nodes.pop(name).stop()
        self._node_store.stores.pop(name)
        self._pod_store.stores.pop(name, None)
        self.health.remove(name)

    def is_behind(self) -> bool:
        """Whether nodes should not start yet: leases are renewed seconds after their time, as the API server is slow
        or we are, or nobody knows yet which Nodes there are."""
        return not self._node_store.is_synced or self.engine.lease_queue.has_due(_BEHIND, late_seconds=_BEHIND_SECONDS)

    @property
    def node_store(self) -> Store:
        """Takes Nodes in, and passes each on to the node that is hosted."""
        return self._node_store

    def reflect(self, nodes: WatchApi, pods: WatchApi | None = None, *, node_store: Store | None = None) -> None:
        """Follow these Nodes and pods, and pass each on to the node that it belongs to, or the Nodes to a store."""
        store = node_store or self._node_store
        self._reflectors.append(self._reflector("watch", "*v1.Node", nodes, store, is_primary=True))
        if pods:
            self._reflectors.append(self._reflector("pods", "*v1.Pod", pods, self._pod_store, is_primary=False))

    def start(self) -> None:
        """Start all nodes; the supervisor runs the tasks."""
        if self.engine.monitor.is_used:
            self._host_health.begin()
            self._host_queue.add_after(self.engine.monitor, self._sensor_seconds)
        for node in self._nodes.values():
            node.start()

    @property
    def tasks(self) -> Sequence[Runnable]:
        """What has to run until the process stops."""
        return (Runner("host", self._host_queue), self._node_workers, self._pod_workers, *self._reflectors)

    @property
    def lasting_tasks(self) -> Sequence[Runnable]:
        """What has to run until all nodes are drained: they are alive, and their events are sent, until then."""
        return (self._lease_workers, self._event_workers)

    def isolated(self, name: str, loops: Sequence[Runnable]) -> Sequence[Runnable]:
        """Return the loops, isolated: an error in one of them ends no other."""
        health = self.health.failures_only(name)
        return [self.unexpected.isolated(name, loop.run, health) for loop in loops]

    async def drain(self) -> None:
        """Deregister nodes where that is wanted, and send the events that wait."""
        for node in self._nodes.values():
            await node.drain()

    def _on_node_deleted(self, name: str) -> None:
        """Go on with the other nodes. Raises NodeDeleted, which ends the process, if there is no other."""
        if len(self._nodes) == 1:
            raise NodeDeleted(f"node {name} was deleted")
        log.info("Hosting the node no longer, as --on-node-deleted=exit says", {"node": name})
        self.remove(name)

    def _next_lease_phase(self) -> float:
        """Return where in the period the next node renews its lease: far from those before, and the first as ever."""
        self._added += 1
        return 1.0 - (self._added - 1) * _GOLDEN % 1.0

    def _scale_up(self) -> None:
        """Have enough workers for the nodes that are hosted."""
        nodes = len(self._nodes)
        most = max(_MOST_WORKERS, min(_MOST_OF_ALL, nodes // _NODES_PER_WORKER))
        self._lease_workers.scale_up(min(_LEASE_WORKERS * nodes, most))
        self._node_workers.scale_up(min(_WORKERS * nodes, most))
        self._event_workers.scale_up(min(_EVENT_WORKERS * nodes, _MOST_EVENT_WORKERS))
        self._pod_workers.scale_up(min(_POD_WORKERS * nodes, _MOST_WORKERS))

    def _reflector(self, loop: str, kind: str, source: WatchApi, store: Store, *, is_primary: bool) -> Runnable:
        health = self.health.loop(loop, deadline_seconds=max(RECONNECT_SECONDS, self._longest_lease_seconds))
        reflector = Reflector(kind, source, store, dependencies=self.dependencies, health=health, is_primary=is_primary)
        return self.unexpected.isolated(loop, reflector.run, health)


def _name(node: NodeObject) -> str | None:
    return node["metadata"].get("name")


def _node_name(pod: PodObject) -> str | None:
    spec = pod.get("spec")  # a deleted pod has its metadata only
    return spec.get("nodeName") if spec else None
