"""What the kubelet's API of a fleet answers: for one node of it, or on a port that all of them share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from agent.adapters.metrics.exposition import exposition
from agent.adapters.metrics.kubelet_metrics import process_start_time
from agent.adapters.metrics.stats_provider import StatsProvider
from agent.adapters.server.sources import Sources, UsageSources
from agent.adapters.server.telemetry import ServerMetrics
from agent.adapters.settings.zpages import Zpages
from agent.core.config import Serving
from agent.core.machine import idle_usage
from agent.core.model import HostSnapshot, PodObject
from agent.core.usage import Detail, HostUsage
from agent.fleet.hosting import HostedFleet
from agent.node import Node
from agent.ports import Clock, ReviewApi
from agent.process import Process

if TYPE_CHECKING:
    from agent.adapters.server.api import Routes
    from agent.adapters.server.http_protocol import Handler

_NO_FILES = Path()  # those of this machine are no node's


class FleetApi:
    """Loads what answers on a port, once somebody connects to it."""

    def __init__(
        self,
        process: Process,
        hosted: HostedFleet,
        *,
        serving: Serving,
        reviews: ReviewApi,
        pages: Zpages,
        understands_commands: bool,
    ) -> None:
        self._process = process
        self._hosted = hosted
        self._serving = replace(serving, system_logs=False)
        self._reviews = reviews
        self._pages = pages
        self._understands_commands = understands_commands
        self._clock = process.dependencies.clock
        self._began = self._clock.now()
        self._metrics = ServerMetrics(self._clock)
        process.metrics.collect(self._metrics.families)

    def load_handler(self, name: str) -> "Handler":
        """Return what answers on the port of a node, or without a name on the one that all share."""
        from agent.adapters.server.api import KubeletApi, full_table  # noqa: PLC0415  with the first connection
        from agent.adapters.server.auth_filter import AuthFilter  # noqa: PLC0415  as above
        from agent.adapters.server.shared_port import SharedRoutes, subject  # noqa: PLC0415  as above

        node_of = partial(subject, node_of_pod=self._node_of_pod, default=name)
        auth_filter = AuthFilter(serving=self._serving, node_of=node_of, reviews=self._reviews, clock=self._clock)
        node = self._hosted.node(name)
        sources = self._sources_of(node) if node else self._sources_of_all()
        table = full_table(self._serving, sources, self._metrics, self._clock)
        routes = SharedRoutes(table, self._routes)
        return KubeletApi(routes, metrics=self._metrics, clock=self._clock, auth_filter=auth_filter).answer

    def _routes(self, name: str) -> "Routes | None":
        """Return the paths of one node below its name."""
        from agent.adapters.server.api import read_only_table  # noqa: PLC0415  as above

        node = self._hosted.node(name)
        return read_only_table(self._sources_of(node), self._metrics, self._clock) if node else None

    def _sources_of(self, node: Node) -> Sources:
        idle = _IdleMachine(self._hosted.machine(node.name), self._began, self._clock)
        stats = StatsProvider(host=idle, node_name=node.name, pods=node.pod_infos)
        return self._sources(stats, node.pods, node.pod)

    def _sources_of_all(self) -> Sources:
        return self._sources(None, self._pods, self._pod)

    def _sources(
        self,
        usage: UsageSources | None,
        pods: Callable[[], Iterator[bytes]],
        pod: Callable[[str, str], PodObject | None],
    ) -> Sources:
        return Sources(
            started=self._began,
            configz=self._pages.configz,
            flagz=self._pages.flagz,
            log_directory=_NO_FILES,
            usage=usage,
            metrics=self._process_metrics,
            probe_metrics=_probe_metrics,
            pods=pods,
            pod=pod,
            understands_commands=self._understands_commands,
            faults=self._faults,
        )

    async def _process_metrics(self) -> bytes:
        return exposition(self._process.metrics.families())

    def _faults(self) -> Mapping[str, str]:
        return self._process.health.faults()

    def _pods(self) -> Iterator[bytes]:
        return chain.from_iterable(node.pods() for node in list(self._hosted.nodes))

    def _pod(self, namespace: str, name: str) -> PodObject | None:
        pods = (node.pod(namespace, name) for node in self._hosted.nodes)
        return next(filter(None, pods), None)

    def _node_of_pod(self, namespace: str, name: str) -> str:
        """Return the name of the node that has this pod; empty if none has."""
        return next((node.name for node in self._hosted.nodes if node.has_pod(namespace, name)), "")


class _IdleMachine:
    """The machine of a node, which does nothing."""

    def __init__(self, machine: HostSnapshot, since: datetime, clock: Clock) -> None:
        self._machine = machine
        self._since = since
        self._clock = clock

    async def usage(self, _detail: Detail) -> HostUsage:
        """Return what of it is in use."""
        return idle_usage(self._machine, since=self._since, now=self._clock.now())


async def _probe_metrics() -> bytes:
    return exposition(process_start_time())
