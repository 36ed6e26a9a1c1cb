"""The program `fleet`: builds the adapters and a Process with the nodes of a fleet, and runs them."""

import asyncio
import logging
import resource
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from agent.adapters.api_connection import RequestMetrics
from agent.adapters.clock import SystemClock
from agent.adapters.credentials import CredentialReloader, Credentials, load_credentials
from agent.adapters.host import LinuxHost
from agent.adapters.kube import KubeReviews, NodeNames, NodeSelection, PodSelection
from agent.adapters.metrics.exposition import exposition
from agent.adapters.server.health_server import HealthServer
from agent.connections import ApiConnections, clients_of, open_connections
from agent.core.adoption import AdoptionSelector
from agent.core.config import NodeConfig, ProcessConfig
from agent.core.fleet import FLEET_LABEL, Fleet, NodePlan, plans
from agent.core.fleet_view import FleetView
from agent.core.nodestatus import routed_address
from agent.fleet.access import check_names, check_rights
from agent.fleet.adoption import AdoptedPods, Adopter
from agent.fleet.api import FleetApi
from agent.fleet.changes import FleetChanges
from agent.fleet.control import ControlSocket
from agent.fleet.hosting import HostedFleet
from agent.fleet.metrics import fleet_families
from agent.fleet.serving import FleetServers, FleetServing, open_servers
from agent.fleet.starter import Starter
from agent.machinery.health import NodeDetails
from agent.machinery.runner import Runnable
from agent.node import NodeClients
from agent.ports import ApiError, Clock, StartError
from agent.process import LOOPS, Process
from agent.supervisor import reload_on_signal, stop_on_signals, supervise

log = logging.getLogger(__name__)

_STOP_SECONDS = 10.0
_MOST_ADOPTED = 5000  # so many nodes' pods have room
_LATENCIES = 1000  # of the last requests
_PAGE_BYTES = resource.getpagesize()


class Screen(Protocol):
    """Shows the fleet to a person."""

    @property
    def refresh_seconds(self) -> float:
        """How long what is shown is good for."""

    def show(self, view: FleetView) -> None:
        """Show the fleet as it is now; returns at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSettings:
    """What the program is started with."""

    process: ProcessConfig
    node: NodeConfig  # what the groups do not change: the connections take their rhythm from it
    fleet: Fleet
    reread: Callable[[], Fleet] | None = None  # reads the file of the fleet again; None where there is none
    socket: Path | None = None  # where `fleet scale` finds us
    adopt: AdoptionSelector | None = None  # which Nodes of others are kept alive
    serving: FleetServing = field(default_factory=FleetServing)


async def serve_fleet(settings: FleetSettings, screen: Screen) -> None:
    """Run the nodes until SIGTERM or SIGINT; SIGHUP reads the file of the fleet again. The Nodes stay."""
    stop = asyncio.Event()
    stop_on_signals(stop, within_seconds=_STOP_SECONDS)
    async with AsyncExitStack() as resources:
        await _FleetApp(settings, screen).run(stop, resources)
    log.info("Stopped fleet", {"fleet": settings.fleet.name})


class _FleetApp:
    """A fleet in one process: its parts, and the order in which they start and stop."""

    def __init__(self, settings: FleetSettings, screen: Screen) -> None:
        self._settings = settings
        self._screen = screen
        self._clock = SystemClock()
        self._machine = LinuxHost(settings.process.host)
        self._process = Process(self._machine, self._clock, sensor_seconds=1.0, details=NodeDetails(history=False))
        self._starter = Starter(self._clock, self._process.is_behind)
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)
        self._began_seconds = self._clock.monotonic()
        self._reload = asyncio.Event()

    async def run(self, stop: asyncio.Event, resources: AsyncExitStack) -> None:
        """Connect to the API server, check that the fleet can be, and run it until `stop` is set."""
        settings, process = self._settings, self._process
        credentials = await load_credentials(settings.process.kubeconfig)
        connections = self._connect(credentials)
        for connection in connections:
            resources.push_async_callback(connection.close)
        clients = clients_of(connections, settings.node)
        planned = list(plans(settings.fleet))
        await self._check(connections, [plan.name for plan in planned])
        servers = await self._open_servers(credentials, resources)
        hosted = self._host(planned, clients, connections, servers)
        adopted_pods = AdoptedPods(hosted, watch=connections.rest, pods=connections.pods, clock=self._clock)
        self._reflect(hosted, connections, adopted_pods)
        changes = FleetChanges(settings.fleet, hosted, connections=connections, clients=clients, reread=settings.reread)
        reload_on_signal(self._reload, changes.request)
        view = partial(self._view, hosted)
        beside: dict[str, Sequence[Runnable]] = {
            "server": [self._health_server(view), *self._control(changes), *(servers.loops if servers else ())],
            "credentials": [self._reloader(credentials, connections, servers)],
            "notify": [_Showing(self._screen, view, self._clock), changes, self._starter, adopted_pods],
        }
        isolated = [loop for name, loops in beside.items() for loop in process.isolated(name, loops)]
        log.info("Started fleet", {"fleet": settings.fleet.name, "server": credentials.server})
        await supervise([*process.tasks, *isolated], stop, lasting=process.lasting_tasks, drain=process.drain)

    def _connect(self, credentials: Credentials) -> ApiConnections:
        metrics = RequestMetrics(self._observe)
        self._process.metrics.collect(metrics.families)
        heartbeat, connectivity = self._settings.node.heartbeat, self._process.connectivity
        return open_connections(credentials, heartbeat, self._reload.set, connectivity, metrics=metrics)

    async def _open_servers(self, credentials: Credentials, resources: AsyncExitStack) -> FleetServers | None:
        """Listen for the kubelet's API, unless the settings switch it off. Raises StartError."""
        config, wanted = self._settings.process, self._settings.serving
        if not config.serving.enabled:
            return None
        address = routed_address((await self._machine.snapshot()).network)
        servers = await open_servers(config, wanted, credentials, address, self._clock)
        resources.push_async_callback(servers.listeners.close)
        return servers

    def _host(
        self,
        planned: Sequence[NodePlan],
        clients: NodeClients,
        connections: ApiConnections,
        servers: FleetServers | None,
    ) -> HostedFleet:
        """Host the nodes that are planned, each at its place. Raises StartError if there is none for all of them."""
        hosted = HostedFleet(self._process, clients, self._starter, servers.placement if servers else None)
        if servers:
            servers.listeners.answer_with(self._api(hosted, connections).load_handler)
        hosted.check(len(planned))
        for plan in planned:
            hosted.add(plan)
        return hosted

    def _api(self, hosted: HostedFleet, connections: ApiConnections) -> FleetApi:
        return FleetApi(
            self._process,
            hosted,
            serving=self._settings.process.serving,
            reviews=KubeReviews(connections.reviews),
            pages=self._settings.serving.pages,
            understands_commands=self._settings.node.pods.commands == "understand",
        )

    async def _check(self, connections: ApiConnections, names: Sequence[str]) -> None:
        """Raise StartError, before anything is created, if nodes with these names cannot be."""
        fleet, hosts_pods = self._settings.fleet, self._settings.node.pods.mode != "ignore"
        await check_rights(connections, hosts_pods=hosts_pods, has_own_nodes=bool(fleet.groups))
        await check_names(connections, fleet.name, names)
        await _log_left_over(connections, fleet.name, names)

    def _reflect(self, hosted: HostedFleet, connections: ApiConnections, adopted_pods: AdoptedPods) -> None:
        """Follow our Nodes, or where some are adopted, all: a label cannot select those with an annotation alone."""
        settings, process = self._settings, self._process
        most_nodes = settings.fleet.count + (_MOST_ADOPTED if settings.adopt else 0)
        hosts_pods = settings.node.pods.mode != "ignore"
        pods = PodSelection(connections.watch, nodes=most_nodes) if hosts_pods else None
        if settings.adopt:
            adopter = Adopter(settings.adopt, settings.node, hosted, process.node_store, adopted_pods)
            process.reflect(NodeSelection(connections.watch), pods, node_store=adopter)
        else:
            process.reflect(NodeSelection(connections.watch, f"{FLEET_LABEL}={settings.fleet.name}"), pods)

    def _health_server(self, view: Callable[[], FleetView]) -> HealthServer:
        self._process.metrics.collect(partial(fleet_families, view))
        server = HealthServer(
            self._settings.process.serving,
            clock=self._clock,
            loops=LOOPS,
            faults=self._process.health.faults,
        )
        server.follow(view)
        server.serve_metrics(lambda: exposition(self._process.metrics.families()))
        return server

    def _control(self, changes: FleetChanges) -> Sequence[Runnable]:
        return [ControlSocket(self._settings.socket, changes.scale)] if self._settings.socket else []

    def _reloader(
        self, credentials: Credentials, connections: ApiConnections, servers: FleetServers | None
    ) -> CredentialReloader:
        return CredentialReloader(
            kubeconfig=self._settings.process.kubeconfig,
            current=credentials,
            connections=(*connections, servers.trust) if servers else connections,
            requested=self._reload,
            clock=self._clock,
            on_change=self._process.connectivity.notify_recovered,
        )

    def _observe(self, status: int | None, took_seconds: float) -> None:
        self._latencies.append(took_seconds)
        self._starter.observe(status, took_seconds)

    def _view(self, hosted: HostedFleet) -> FleetView:
        nodes = list(hosted.nodes)
        ages = (node.lease_health.renewal_age_seconds for node in nodes)
        return FleetView(
            name=self._settings.fleet.name,
            seconds=self._clock.monotonic() - self._began_seconds,
            states=hosted.states(),
            lease_ages=[age for age in ages if age is not None],
            missed=self._process.health.missed_renewals(),
            latencies=list(self._latencies),
            pods=sum(len(node.pod_infos()) for node in nodes),
            rss_bytes=int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * _PAGE_BYTES,
        )


class _Showing:
    """Shows the fleet again and again."""

    def __init__(self, screen: Screen, view: Callable[[], FleetView], clock: Clock) -> None:
        self._screen = screen
        self._view = view
        self._clock = clock

    async def run(self) -> None:
        while True:
            self._screen.show(self._view())
            await self._clock.sleep(self._screen.refresh_seconds)


async def _log_left_over(connections: ApiConnections, fleet_name: str, names: Iterable[str]) -> None:
    """Log how many Nodes an earlier run left that are not planned any more: nobody renews their leases."""
    try:
        ours = (await NodeNames(connections.rest, f"{FLEET_LABEL}={fleet_name}").list()).objects
    except ApiError as error:
        raise StartError(f"cannot list the Nodes of fleet {fleet_name}: {error}") from error
    if left_over := {node["metadata"]["name"] for node in ours} - set(names):
        fields = {"fleet": fleet_name, "count": len(left_over), "first": min(left_over)}
        log.warning("Nodes of this fleet are not wanted any more, fleet delete removes them", fields)
