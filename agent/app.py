"""The daemon: builds the adapters, a Process with one Node, and the servers, and runs them until a signal."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from agent.adapters.certificates.bootstrap_files import check_node_name
from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.clock import SystemClock
from agent.adapters.credentials import CredentialReloader, Credentials, load_credentials
from agent.adapters.host import LinuxHost, booted_at
from agent.adapters.kube import KubeReviews
from agent.adapters.logind import Logind
from agent.adapters.metrics.kubelet_metrics import Collector, KubeletMetrics
from agent.adapters.metrics.stats_provider import StatsProvider
from agent.adapters.server.health_server import HealthServer
from agent.adapters.server.sources import Sources
from agent.adapters.server.telemetry import ServerMetrics
from agent.adapters.settings.zpages import EMPTY, Zpages
from agent.adapters.systemd import Systemd
from agent.connections import ApiConnections, clients_of, open_connections, watches_of
from agent.controllers.notify import Notifier
from agent.controllers.shutdown import ShutdownManager
from agent.core.capacity import check_reservations
from agent.core.config import SIMULATED, Config, simulation_fields
from agent.core.shutdown import requested_seconds
from agent.kubelet_server import KubeletServerBuilder, KubeletServers
from agent.machinery.isolation import Isolation
from agent.machinery.runner import Controller, Runnable, Runner, Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.node import Node
from agent.ports import NodeDeleted, ServiceManager
from agent.process import LOOPS, Process
from agent.supervisor import DRAIN_SECONDS, reload_on_signal, stop_on_signals, supervise
from agent.tls_bootstrap import BootstrapPlan, StopForwarder, plan_bootstrap

log = logging.getLogger(__name__)

_STOP_SECONDS = 6.0  # systemd waits for 90, kubectl for 30, a person for less
_CERTIFICATE_WORKERS = 3  # client, serving, watchdog: a CSR that waits to be signed holds one of them for a minute


async def serve(
    config: Config,
    *,
    reread_logging: Callable[[], None] = lambda: None,
    keys: KeyWorker | None = None,
    manager: ServiceManager | None = None,
    zpages: Zpages = EMPTY,
) -> None:
    """Run a node until SIGTERM or SIGINT; SIGHUP reloads credentials and logging settings."""
    log.info("Kubelet version", {"kubeletVersion": config.node.kubelet_version})
    stop, reload = asyncio.Event(), asyncio.Event()
    daemon = _Daemon(config, manager or Systemd(), zpages, reload)
    stop_on_signals(stop, within_seconds=_STOP_SECONDS + daemon.grace_seconds)
    reload_on_signal(reload, reread_logging, daemon.notifier.reloading)
    async with AsyncExitStack() as resources:
        if not await daemon.bootstrap(stop, keys):
            return
        try:
            await daemon.run(stop, resources)
        except* NodeDeleted:
            log.info("Ending, as --on-node-deleted=exit says", {"node": config.node.node_name})
    log.info("Stopped kubelet", {"node": config.node.node_name})
    if daemon.host.hangs:
        logging.shutdown()
        os._exit(0)  # a thread that reads a dead disk cannot be waited for


class _Daemon:
    """One node in one process: its parts, and the order in which they start and stop."""

    def __init__(self, config: Config, manager: ServiceManager, zpages: Zpages, reload: asyncio.Event) -> None:
        self._config, self._zpages, self._reload = config, zpages, reload
        self._clock = clock = SystemClock()
        self._metrics = ServerMetrics(clock)
        self._bootstrap = BootstrapPlan()
        self.grace_seconds = requested_seconds(config.node.shutdown.grace_periods)
        self.host = LinuxHost(config.process.host)
        self._process = Process(
            self.host,
            clock,
            sensor_seconds=config.process.host.sensor_seconds,
            node_name=config.node.node_name,
            booted_at=booted_at(),
        )
        queue: WorkQueue[Controller] = WorkQueue(clock)
        self._certificates = Runner("certificates", queue, workers=_CERTIFICATE_WORKERS)
        self._scheduling = Scheduling(
            loop="certificates",
            queue=queue,
            dependencies=self._process.dependencies,
            health=self._process.health.failures_only("certificates"),
        )
        self.notifier = Notifier(
            node_name=config.node.node_name, manager=manager, clock=clock, isolation=self._isolation("notify")
        )
        self._health = HealthServer(
            config.process.serving,
            clock=clock,
            node_name=config.node.node_name,
            loops=LOOPS,
            faults=self._process.health.faults,
            settings=zpages.settings,
            observe=self._metrics.observe_health,
        )

    async def bootstrap(self, stop: asyncio.Event, keys: KeyWorker | None) -> bool:
        """Obtain the first client certificate if there is none. Returns False if the process is to stop before."""
        self._bootstrap = plan = await plan_bootstrap(
            self._config, scheduling=self._scheduling, on_new=self._reload.set, key_worker=keys
        )
        if plan.is_awaited:
            waiting: Sequence[Runnable] = [
                self._certificates,
                StopForwarder(stop, plan.done),
                *self._process.isolated("server", [self._health]),
                *self._process.isolated("notify", [self.notifier]),
            ]
            await supervise(waiting, plan.done)
        return not stop.is_set()

    async def run(self, stop: asyncio.Event, resources: AsyncExitStack) -> None:
        """Connect to the API server, start the servers, and run all loops until `stop` is set."""
        config = self._config
        credentials = await load_credentials(config.process.kubeconfig, self._bootstrap.pair)
        check_node_name(credentials, config)
        connections = open_connections(credentials, config.node.heartbeat, self._reload.set, self._process.connectivity)
        for connection in connections:
            resources.push_async_callback(connection.close)
        check_reservations(config.node, await self.host.snapshot())
        process, node = self._process, self._node(connections)
        servers = await self._servers(node, connections, credentials)
        resources.push_async_callback(servers.close)
        reloader = CredentialReloader(
            kubeconfig=config.process.kubeconfig,
            current=credentials,
            connections=(*connections, *servers.trust),
            requested=self._reload,
            clock=self._clock,
            on_change=process.connectivity.notify_recovered,
            pair=self._bootstrap.pair,
        )
        shutdown = self._shutdown(node)
        beside: dict[str, Sequence[Runnable]] = {
            "server": [self._health, *servers.listeners],
            "notify": [self.notifier],
            "shutdown": shutdown,
            "credentials": [reloader],
            "certificates": servers.loops,
        }
        loops = [loop for loops in beside.values() for loop in loops]
        controllers = (*self._bootstrap.controllers, *servers.controllers)
        for source in (self.host, connections.lease.metrics, self._metrics, *loops, *controllers):
            if isinstance(source, Collector):
                process.metrics.collect(source.families)
        process.start()
        log.info("Started kubelet", {"node": config.node.node_name, "server": credentials.server})
        if (fields := simulation_fields(config.node)) is not None:
            log.info(SIMULATED, fields)
        await supervise(
            [
                *process.tasks,
                self._certificates,
                *(loop for name, loops in beside.items() for loop in self._process.isolated(name, loops)),
            ],
            stop,
            on_stop=partial(self._on_stop, shutdown),
            on_stop_seconds=DRAIN_SECONDS + self.grace_seconds,
            lasting=process.lasting_tasks,
            drain=process.drain,
        )

    def _isolation(self, name: str) -> Isolation:
        return self._process.unexpected.isolation(name, self._process.health.failures_only(name))

    def _node(self, connections: ApiConnections) -> Node:
        node = self._process.add(self._config.node, clients_of(connections, self._config.node))
        self._process.reflect(*watches_of(connections, self._config.node))
        self._health.follow(node.view)
        self.notifier.follow(node.summary)
        return node

    async def _servers(self, node: Node, connections: ApiConnections, credentials: Credentials) -> KubeletServers:
        builder = KubeletServerBuilder(
            config=self._config,
            sources=self._sources(node),
            metrics=self._metrics,
            reviews=KubeReviews(connections.reviews),
            credentials=credentials,
            addresses=node.addresses,
            scheduling=self._scheduling,
        )
        return await builder.build()

    def _sources(self, node: Node) -> Sources:
        """Return the sources of what the endpoints show."""
        stats = StatsProvider(host=self.host, node_name=self._config.node.node_name, pods=node.pod_infos)
        gates = self._zpages.configz.get("kubeletconfig", {}).get("featureGates", {})
        kubelet = KubeletMetrics(self._config, metrics=self._process.metrics, pods=node.pod_counts, feature_gates=gates)
        return Sources(
            started=self._clock.now(),
            configz=self._zpages.configz,
            flagz=self._zpages.flagz,
            log_directory=Path(self._config.process.host.root, "var/log"),
            usage=stats,
            metrics=kubelet.metrics,
            probe_metrics=kubelet.probes,
            pods=node.pods,
            pod=node.pod,
            understands_commands=self._config.node.pods.commands == "understand",
            faults=self._process.health.faults,
        )

    def _shutdown(self, node: Node) -> Sequence[ShutdownManager]:
        """Return the manager of graceful node shutdown, if the settings enable it."""
        settings = self._config.node.shutdown
        if not settings.is_graceful:
            return ()
        return (
            ShutdownManager(periods=settings.grace_periods, logind=Logind(), shutdown=node.shutdown, clock=self._clock),
        )

    async def _on_stop(self, shutdown: Sequence[ShutdownManager]) -> None:
        """Notify the service manager and the cluster while everything still runs."""
        with self._isolation("shutdown").attempt():
            self.notifier.stopping()
            for loop in shutdown:
                await loop.process_ends()
