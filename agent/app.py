"""Builds the adapters, hosts the node, supervises its loops."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import NamedTuple

from agent.adapters.certificates.smith import Smith
from agent.adapters.clock import SystemClock
from agent.adapters.credentials import Credentials, load_credentials
from agent.adapters.host import LinuxHost, architecture
from agent.adapters.kube import KubeCSINodes, KubeEvents, KubeLeases, KubeNodes, KubeSelection
from agent.adapters.lane import Lane
from agent.adapters.rotation import Rotation
from agent.adapters.server import HealthServer
from agent.core.capacity import check_reservations
from agent.core.config import Config
from agent.core.errors import ConfigError
from agent.enrolment import Ending, Enrolment, enrol, serving_by_request
from agent.loops.weather import Weather
from agent.node import Lanes, Loop, Node
from agent.ports import NodeDeleted, StartError

log = logging.getLogger(__name__)

_LAST_WORDS_SECONDS = 3.0
_STOP_SECONDS = 6.0  # systemd waits for 90, kubectl for 30, a person for less


async def serve(
    config: Config, *, reread_logging: Callable[[], None] = lambda: None, keys: Smith | None = None
) -> None:
    """Be a node until a signal says stop; SIGHUP has credentials and log settings read again."""
    log.info("Kubelet version", {"kubeletVersion": config.kubelet_version})
    clock, stop, reload = SystemClock(), asyncio.Event(), asyncio.Event()
    weather = Weather(clock)
    _stop_on_signals(stop)
    _reload_on_signal(reload, reread_logging)
    async with AsyncExitStack() as resources:
        health = HealthServer(config.serving)
        resources.push_async_callback(health.close)
        await health.start()
        enrolment = await enrol(config, clock=clock, weather=weather, on_new=reload.set, keys=keys)
        if not await _admitted(enrolment, stop):
            return
        credentials = await load_credentials(config.kubeconfig, enrolment.pair)
        ways = _ways(credentials, config, reload.set)
        for lane in ways:
            resources.push_async_callback(lane.close)
        host = LinuxHost(config)
        check_reservations(config, await host.snapshot())
        node = Node(config=config, host=host, lanes=_lanes(ways, config), clock=clock, weather=weather)
        rotation = _rotation(config, credentials, ways, enrolment, asked=reload, weather=weather, clock=clock)
        node.start()
        log.info("Started kubelet", {"node": config.node_name, "server": credentials.server})
        beside = [rotation, *enrolment.lasting, *_serving(config, node, clock, weather)]
        try:
            await supervise([*node.loops, *beside], stop, lasting=[node.voice], last_words=node.last_words)
        except* NodeDeleted:
            log.info("Ending, as --on-node-deleted=exit says", {"node": config.node_name})
    log.info("Stopped kubelet", {"node": config.node_name})
    if host.hangs:
        os._exit(0)  # a thread that reads a dead disk cannot be waited for


def _rotation(
    config: Config,
    credentials: Credentials,
    ways: "_Ways",
    enrolment: Enrolment,
    *,
    asked: asyncio.Event,
    weather: Weather,
    clock: SystemClock,
) -> Rotation:
    return Rotation(
        kubeconfig=config.kubeconfig,
        current=credentials,
        lanes=ways,
        asked=asked,
        clock=clock,
        on_change=weather.improved,
        pair=enrolment.pair,
    )


def _serving(config: Config, node: Node, clock: SystemClock, weather: Weather) -> Sequence[Loop]:
    """What keeps a serving certificate that the cluster signs; nobody serves with it yet."""
    if not config.certificates.serving_by_request or not config.kubeconfig:
        return ()
    return serving_by_request(config, clock=clock, weather=weather, addresses=node.addresses)[1]


async def supervise(
    loops: Sequence[Loop],
    stop: asyncio.Event,
    *,
    lasting: Sequence[Loop] = (),
    last_words: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run all loops until `stop`, lasting ones until the last words; if one fails, all stop and the error surfaces."""
    with _told_plainly():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(loop.run(), name=type(loop).__name__) for loop in lasting]
            await _until(stop, loops)
            if last_words:
                await _in_time(last_words)
            for task in tasks:
                task.cancel()


async def _admitted(enrolment: Enrolment, stop: asyncio.Event) -> bool:
    """Wait for the first credentials where there are none; whether the node can start."""
    if enrolment.first:
        await supervise([*enrolment.first, Ending(stop, enrolment.admitted)], enrolment.admitted)
    return not stop.is_set()


@contextmanager
def _told_plainly() -> Iterator[None]:
    """A StartError of a task surfaces as itself: it is one line for a person, not a tree of groups."""
    try:
        yield
    except BaseExceptionGroup as group:
        found: BaseException | None = group.subgroup(StartError)
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        if found is not None:
            raise found from None
        raise


async def _until(stop: asyncio.Event, loops: Sequence[Loop]) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop.run(), name=type(loop).__name__) for loop in loops]
        await stop.wait()
        for task in tasks:
            task.cancel()


async def _in_time(last_words: Callable[[], Awaitable[None]]) -> None:
    try:
        async with asyncio.timeout(_LAST_WORDS_SECONDS):
            await last_words()
    except TimeoutError:
        log.error("Last words were not heard in time", {"seconds": _LAST_WORDS_SECONDS})


class _Ways(NamedTuple):
    """Lease, status, watch and the rest each have connections of their own, so that none waits for another."""

    lease: Lane
    status: Lane
    watch: Lane
    rest: Lane


def _ways(credentials: Credentials, config: Config, on_unauthorized: Callable[[], None]) -> _Ways:
    def lane(timeout_seconds: float | None = None) -> Lane:
        return Lane(
            credentials,
            architecture=architecture(),
            timeout_seconds=timeout_seconds,
            on_unauthorized=on_unauthorized,
        )

    beat_seconds = config.heartbeat.request_timeout_seconds
    return _Ways(lease=lane(beat_seconds), status=lane(beat_seconds), watch=lane(), rest=lane())


def _lanes(ways: _Ways, config: Config) -> Lanes:
    return Lanes(
        nodes=KubeNodes(ways.rest),
        status_nodes=KubeNodes(ways.status),
        lease_nodes=KubeNodes(ways.lease),
        leases=KubeLeases(ways.lease),
        csinodes=KubeCSINodes(ways.rest),
        events=KubeEvents(ways.rest),
        own_node=KubeSelection.node(ways.watch, config.node_name),
    )


def _stop_on_signals(stop: asyncio.Event) -> None:
    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)  # asked twice: no more patience
        stop.set()
        # Whatever hangs then, a thread on a dead disk or a dead resolver, is left behind.
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, _STOP_SECONDS)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


def _reload_on_signal(reload: asyncio.Event, reread_logging: Callable[[], None]) -> None:
    def on_signal() -> None:
        log.info("Reloading credentials and log settings")
        reload.set()
        try:
            reread_logging()
        except (ConfigError, OSError) as error:
            log.error("Unable to reload log settings, keeping those in use", {"err": error})

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_signal)
