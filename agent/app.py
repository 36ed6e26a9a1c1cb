"""Builds the adapters, hosts the node, runs its loops."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from agent.adapters.certificates.smith import Smith
from agent.adapters.clock import SystemClock
from agent.adapters.credentials import load_credentials
from agent.adapters.host import LinuxHost, booted_at
from agent.adapters.kube import KubeReviews
from agent.adapters.logind import Logind
from agent.adapters.metrics.figures import Figures
from agent.adapters.metrics.own import Measured, OwnMetrics
from agent.adapters.rotation import Rotation
from agent.adapters.server import HealthServer
from agent.adapters.server.counting import ServerTallies
from agent.adapters.server.sources import Sources
from agent.adapters.settings.zpages import EMPTY, Zpages
from agent.adapters.systemd import Systemd
from agent.core.capacity import check_reservations
from agent.core.config import Config
from agent.core.shutdown import requested_seconds
from agent.enrolment import Ending, Enrolment, enrol
from agent.loops.notify import NotifyLoop
from agent.loops.pulse import Pulse
from agent.loops.shutdown import ShutdownLoop
from agent.loops.startup import Startup
from agent.loops.weather import Weather
from agent.machinery.isolation import Isolation
from agent.node import Loop, Node
from agent.ports import NodeDeleted, ServiceManager
from agent.serving import Doorkeeper, Doors
from agent.supervisor import LAST_WORDS_SECONDS, reload_on_signal, stop_on_signals, supervise
from agent.ways import Ways, lanes_of, open_ways

log = logging.getLogger(__name__)

_STOP_SECONDS = 6.0  # systemd waits for 90, kubectl for 30, a person for less


async def serve(
    config: Config,
    *,
    reread_logging: Callable[[], None] = lambda: None,
    keys: Smith | None = None,
    manager: ServiceManager | None = None,
    zpages: Zpages = EMPTY,
) -> None:
    """Be a node until a signal says stop; SIGHUP has credentials and log settings read again."""
    log.info("Kubelet version", {"kubeletVersion": config.kubelet_version})
    stop, reload = asyncio.Event(), asyncio.Event()
    daemon = _Daemon(config, manager or Systemd(), zpages, reload)
    stop_on_signals(stop, within_seconds=_STOP_SECONDS + daemon.grace_seconds)
    reload_on_signal(reload, reread_logging, daemon.notifier.reloading)
    async with AsyncExitStack() as resources:
        if not await daemon.admitted(stop, keys):
            return
        try:
            await daemon.live(stop, resources)
        except* NodeDeleted:
            log.info("Ending, as --on-node-deleted=exit says", {"node": config.node_name})
    log.info("Stopped kubelet", {"node": config.node_name})
    if daemon.host.hangs:
        os._exit(0)  # a thread that reads a dead disk cannot be waited for


class _Daemon:
    """One node in one process: what it is built from, and how that fits together."""

    def __init__(self, config: Config, manager: ServiceManager, zpages: Zpages, reload: asyncio.Event) -> None:
        self._config, self._zpages, self._reload = config, zpages, reload
        self._clock = clock = SystemClock()
        self._weather, self._pulse = Weather(clock), Pulse(config, clock)
        self._startup = Startup(clock, booted_at=booted_at())
        self._tallies = ServerTallies(clock)
        self._enrolment = Enrolment()
        self.grace_seconds = requested_seconds(config.shutdown.grace_periods)
        self.host = LinuxHost(config)
        self.notifier = NotifyLoop(
            node_name=config.node_name, manager=manager, clock=clock, isolation=self._isolation("notify")
        )
        self._health = HealthServer(
            config.serving,
            clock=clock,
            node_name=config.node_name,
            loops=self._pulse.loops,
            faults=self._pulse.faults,
            settings=zpages.settings,
            observe=self._tallies.observe_health,
        )

    async def admitted(self, stop: asyncio.Event, keys: Smith | None) -> bool:
        """Wait for the first credentials where there are none; whether the node can start."""
        self._enrolment = enrolment = await enrol(
            self._config, clock=self._clock, weather=self._weather, on_new=self._reload.set, keys=keys
        )
        if enrolment.first:
            waiting = [
                *self._isolated("certificates", enrolment.first),
                Ending(stop, enrolment.admitted),
                *self._isolated("server", [self._health]),
                *self._isolated("notify", [self.notifier]),
            ]
            await supervise(waiting, enrolment.admitted)
        return not stop.is_set()

    async def live(self, stop: asyncio.Event, resources: AsyncExitStack) -> None:
        """Run everything until `stop`."""
        config = self._config
        credentials = await load_credentials(config.kubeconfig, self._enrolment.pair)
        ways = open_ways(credentials, config, self._reload.set)
        for lane in ways:
            resources.push_async_callback(lane.close)
        check_reservations(config, await self.host.snapshot())
        node = self._node(ways)
        measured: list[Measured] = [node, self.host, ways.lease.tally, self._tallies]
        doors = await self._doors(node, ways, measured)
        resources.push_async_callback(doors.close)
        rotation = Rotation(
            kubeconfig=config.kubeconfig,
            current=credentials,
            lanes=ways,
            asked=self._reload,
            clock=self._clock,
            on_change=self._weather.improved,
            pair=self._enrolment.pair,
        )
        shutdown = self._shutdown(node)
        beside: dict[str, Sequence[Loop]] = {
            "server": [self._health, *doors.listeners],
            "notify": [self.notifier],
            "shutdown": shutdown,
            "credentials": [rotation],
            "certificates": [*self._enrolment.lasting, *(loop for loop in doors.loops if loop not in doors.listeners)],
        }
        measured += [loop for loops in beside.values() for loop in loops if isinstance(loop, Measured)]
        node.start()
        log.info("Started kubelet", {"node": config.node_name, "server": credentials.server})
        await supervise(
            [*node.loops, *(loop for name, loops in beside.items() for loop in self._isolated(name, loops))],
            stop,
            parting=partial(self._part, shutdown),
            parting_seconds=LAST_WORDS_SECONDS + self.grace_seconds,
            lasting=node.lasting,
            last_words=node.last_words,
        )

    def _isolated(self, name: str, loops: Sequence[Loop]) -> Sequence[Loop]:
        """Loops that end nothing else, whatever happens to them."""
        return [self._pulse.unexpected.isolated(name, loop.run, self._pulse.others[name]) for loop in loops]

    def _isolation(self, name: str) -> Isolation:
        return self._pulse.unexpected.isolation(name, self._pulse.others[name])

    def _node(self, ways: Ways) -> Node:
        node = Node(
            config=self._config,
            host=self.host,
            lanes=lanes_of(ways, self._config),
            clock=self._clock,
            weather=self._weather,
            pulse=self._pulse,
            startup=self._startup,
        )
        self._health.follow(node.portrait)
        self.notifier.follow(node.vitals)
        return node

    async def _doors(self, node: Node, ways: Ways, measured: Sequence[Measured]) -> Doors:
        keeper = Doorkeeper(
            config=self._config,
            sources=self._sources(node, measured),
            tallies=self._tallies,
            reviews=KubeReviews(ways.reviews),
            addresses=node.addresses,
            clock=self._clock,
            weather=self._weather,
        )
        return await keeper.open()

    def _sources(self, node: Node, measured: Sequence[Measured]) -> Sources:
        """What the endpoints show."""
        figures = Figures(host=self.host, node_name=self._config.node_name, pods=node.pod_infos)
        gates = self._zpages.configz.get("kubeletconfig", {}).get("featureGates", {})
        own = OwnMetrics(self._config, measured=measured, pods=node.pod_counts, feature_gates=gates)
        return Sources(
            configz=self._zpages.configz,
            flagz=self._zpages.flagz,
            log_directory=Path(self._config.host_root, "var/log"),
            summary=figures.summary,
            metrics=own.metrics,
            resource_metrics=figures.resource,
            cadvisor_metrics=figures.cadvisor,
            probe_metrics=own.probes,
            pods=node.pods,
            pod=node.pod,
            faults=self._pulse.faults,
        )

    def _shutdown(self, node: Node) -> Sequence[ShutdownLoop]:
        """What tells the cluster before the machine goes down, where that is wanted."""
        settings = self._config.shutdown
        if not settings.is_graceful:
            return ()
        return (
            ShutdownLoop(periods=settings.grace_periods, logind=Logind(), departure=node.departure, clock=self._clock),
        )

    async def _part(self, shutdown: Sequence[ShutdownLoop]) -> None:
        """What is to be said while everything still runs."""
        with self._isolation("shutdown").attempt():
            self.notifier.stopping()
            for loop in shutdown:
                await loop.process_ends()
