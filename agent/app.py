"""Builds the adapters, hosts the node, supervises its loops."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from agent.adapters.clock import SystemClock
from agent.adapters.credentials import Credentials, load_credentials
from agent.adapters.host import LinuxHost, architecture
from agent.adapters.kube import KubeCSINodes, KubeEvents, KubeLeases, KubeNodes, Lane
from agent.adapters.server import HealthServer
from agent.core.capacity import check_reservations
from agent.core.config import Config
from agent.node import Lanes, Loop, Node

log = logging.getLogger(__name__)


async def serve(config: Config) -> None:
    """Be a node until a signal says stop."""
    log.info("Kubelet version", {"kubeletVersion": config.kubelet_version})
    stop = asyncio.Event()
    _stop_on_signals(stop)
    credentials = await load_credentials(config.kubeconfig)
    async with AsyncExitStack() as resources:
        health = HealthServer(config.serving)
        resources.push_async_callback(health.close)
        await health.start()
        lanes = await resources.enter_async_context(_lanes(credentials, config))
        host = LinuxHost(config)
        check_reservations(config, await host.snapshot())
        node = Node(config=config, host=host, lanes=lanes, clock=SystemClock())
        node.start()
        log.info("Started kubelet", {"node": config.node_name, "server": credentials.server})
        await supervise(node.loops, stop)
    log.info("Stopped kubelet", {"node": config.node_name})
    if host.hangs:
        os._exit(0)  # a thread that reads a dead disk cannot be waited for


async def supervise(loops: Sequence[Loop], stop: asyncio.Event) -> None:
    """Run all loops until `stop`; if one fails, the rest stop and the error surfaces."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop.run(), name=type(loop).__name__) for loop in loops]
        await stop.wait()
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def _lanes(credentials: Credentials, config: Config) -> AsyncIterator[Lanes]:
    """Lease, status and the rest each have connections of their own, so that none waits for another."""
    beat_seconds = config.heartbeat.request_timeout_seconds
    lease = Lane(credentials, architecture=architecture(), timeout_seconds=beat_seconds)
    status = Lane(credentials, architecture=architecture(), timeout_seconds=beat_seconds)
    rest = Lane(credentials, architecture=architecture())
    try:
        yield Lanes(
            nodes=KubeNodes(rest),
            status_nodes=KubeNodes(status),
            lease_nodes=KubeNodes(lease),
            leases=KubeLeases(lease),
            csinodes=KubeCSINodes(rest),
            events=KubeEvents(rest),
        )
    finally:
        for lane in (lease, status, rest):
            await lane.close()


def _stop_on_signals(stop: asyncio.Event) -> None:
    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)  # asked twice: no more patience
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
