"""`fake-kubelet demo`: the embedded cluster, the real daemon, and a live view of the node that they make."""

import asyncio
import ctypes
import os
import random
import signal
import socket
import ssl
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.child_process import python_module
from agent.adapters.clock import SystemClock
from agent.adapters.host import LinuxHost
from agent.adapters.settings import load
from agent.cli.demo_view import Scene, Show, live_screen, plain_lines
from agent.core import lease
from agent.core.config import Config
from agent.core.model import LeaseObject, NodeObject
from agent.core.pressure import DEFAULT_HARD, signal_observations
from agent.minicluster import MiniCluster
from agent.ports import NotSigned, StartError

_HOST = "127.0.0.1"
_PORTS = range(20000, 32000)
_REFRESH_SECONDS = 0.5
_STOP_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_EVICTION_HARD = ",".join(f"{signal}<{value}" for signal, value in DEFAULT_HARD.items())


async def run_demo(duration_seconds: float | None, eviction_hard: str | None) -> None:
    """Show a node until a signal, or for `duration_seconds`. Raises StartError if it never became ready."""
    eviction_hard = eviction_hard or _EVICTION_HARD
    config = load(["--eviction-hard", eviction_hard])  # before anything starts: it may be wrong
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    end = None if duration_seconds is None else SystemClock().monotonic() + duration_seconds
    with tempfile.TemporaryDirectory(prefix="fake-kubelet-demo-") as folder:
        kubeconfig, log = Path(folder, "kubeconfig"), Path(folder, "fake-kubelet.log")
        port, page_port = _free_ports()
        flags = ["--kubeconfig", str(kubeconfig), "--eviction-hard", eviction_hard]
        flags += _isolating_flags(folder, port, page_port)
        tls, authority = await make_tls(_HOST)
        async with MiniCluster(host=_HOST, ssl_context=tls, kubelet_host=_HOST) as cluster:
            cluster.write_kubeconfig(kubeconfig, certificate_authority=authority)
            async with _daemon(flags, log) as daemon:
                screen = live_screen if sys.stdout.isatty() else plain_lines
                with screen(_footer(kubeconfig, log, f"http://{_HOST}:{page_port}/")) as show:
                    await _show_node(cluster, config, show, daemon=daemon, stop=stop, end=end)
                if daemon.returncode is not None:
                    raise StartError(f"the daemon ended with exit code {daemon.returncode}:\n{_last_lines(log)}")


async def make_tls(host: str) -> tuple[ssl.SSLContext, str]:
    """Make a self-signed certificate for this address; kubectl sends a token over TLS only.

    Returns the context of a server, and the certificate (PEM) as the authority that a client has to trust.
    """
    try:
        pair = await KeyWorker().self_signed(host)
    except NotSigned as error:
        raise StartError(str(error)) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with os.fdopen(os.memfd_create("key", os.MFD_CLOEXEC), "w") as memory:  # the key is in no file
        memory.write(pair.key_pem + pair.certificate_pem)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}")
    return context, pair.certificate_pem


def _free_ports() -> tuple[int, int]:
    """Return two ports on which nobody listens: for the kubelet's API, and for the status page.

    They are below those that Linux gives to outgoing connections, which could take one before the daemon listens.
    """
    free = filter(_is_free, random.SystemRandom().sample(_PORTS, len(_PORTS)))
    return next(free), next(free)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the daemon does: TIME_WAIT is no obstacle
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _isolating_flags(folder: str, port: int, page_port: int) -> list[str]:
    """Return flags that keep the daemon apart from a kubelet and from other users of this machine.

    Its API serves the log files of the user who started the demo, so it requires the embedded cluster's token.
    """
    serving = ["--address", _HOST, "--port", str(port), "--read-only-port", "0", "--healthz-port", str(page_port)]
    callers = ["--anonymous-auth=false", "--authentication-token-webhook", "--authorization-mode=Webhook"]
    return [*serving, *callers, "--cert-dir", str(Path(folder, "pki"))]


async def _show_node(
    cluster: MiniCluster, config: Config, show: Show, *, daemon: Process, stop: asyncio.Event, end: float | None
) -> None:
    """Show a scene twice a second until the signal, the end, or the exit of the daemon."""
    clock = SystemClock()
    host = LinuxHost(config.process.host)
    await host.snapshot()
    was_ready = False
    while daemon.returncode is None and (end is None or clock.monotonic() < end):
        scene = await _scene(cluster, host, config)
        was_ready = was_ready or scene.ready
        show(scene)
        if await clock.wait(stop, _REFRESH_SECONDS):
            return
    if daemon.returncode is None and not was_ready:
        raise StartError("the node did not become ready in the time given with --for")


async def _scene(cluster: MiniCluster, host: LinuxHost, config: Config) -> Scene:
    store = cluster.store
    node = next(iter(store.list("nodes")), None)
    name = node["metadata"]["name"] if node else ""
    return Scene(
        node=cast("NodeObject | None", node),
        lease=cast("LeaseObject | None", store.get("leases.coordination.k8s.io", name, lease.LEASE_NAMESPACE)),
        events=store.list("events"),
        pods=store.list("pods"),
        signals=signal_observations(await host.glance()),
        thresholds=config.node.eviction.hard,
        now=datetime.now(UTC),
    )


@asynccontextmanager
async def _daemon(flags: list[str], log: Path) -> AsyncIterator[Process]:
    """Run the daemon in a process of its own, with the command line that a user would type."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *python_module("agent", *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C goes to the demo, which then ends the daemon
            preexec_fn=_end_with_parent,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


def _end_with_parent() -> None:
    """Have the kernel end this process when the demo is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _footer(kubeconfig: Path, log: Path, page: str) -> str:
    return "\n".join(
        (
            f"The node's page: {page}",
            f"Its log: {log}",
            "Try, in another terminal (Deployments and CRDs need a real API server):",
            f"  export KUBECONFIG={kubeconfig}",
            "  kubectl run web --image=nginx",
            "  kubectl get pods -o wide",
            "  kubectl logs web",
            "  kubectl top node",
            "  kubectl describe node",
        )
    )


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-5:])
