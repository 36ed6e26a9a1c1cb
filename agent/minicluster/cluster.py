"""The embedded cluster: an API server and the controllers a node agent depends on, in one process."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import socket
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Self

import msgspec
from aiohttp import web

from agent.minicluster.api_resources import DEFAULT_NAMESPACES, NAMESPACES, RESOURCES
from agent.minicluster.apiserver import ApiServer
from agent.minicluster.authentication import Authenticator
from agent.minicluster.controller_manager import (
    NAMESPACE_CONTENT,
    NODE_DEPENDENTS,
    GarbageCollector,
    NodeMonitor,
    NodeMonitorOptions,
    NodeReconciler,
)
from agent.minicluster.kubelet_client import KubeletClient
from agent.minicluster.node_strategy import NODES
from agent.minicluster.object_store import ObjectStore
from agent.minicluster.registry import GenericRegistry
from agent.minicluster.scheduler import Scheduler
from agent.minicluster.taint_eviction import TaintEviction

if TYPE_CHECKING:
    import ssl
    from pathlib import Path
    from types import TracebackType

MAX_UNAUTHENTICATED = 128
_HANDSHAKE_SECONDS = 10.0
_RETRY_SECONDS = 0.1
_SHUTDOWN_SECONDS = 0.3


class MiniCluster:
    """A Kubernetes API server in memory, with the node-lifecycle controller's strategy.

    Only the bearer of `token` may use it; without one, a random token is made. kubectl sends a token over TLS only.
    Kubelets are reached where their Nodes say, or all of them at `kubelet_host`.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        node_monitor: NodeMonitorOptions | None = None,
        token: str = "",
        tokens: Mapping[str, str] | None = None,
        kubelet_host: str = "",
    ) -> None:
        now = partial(datetime.now, UTC)
        self.store = ObjectStore()
        self.token = token or secrets.token_urlsafe(32)
        self._host = host
        self._port = port
        self._ssl_context = ssl_context
        self._registry = GenericRegistry(self.store, now=now)
        authenticator = Authenticator(host=host, token=self.token, usernames=tokens or {})
        self.kubelet_token = authenticator.kubelet_token
        self._kubelets = KubeletClient(self.store, token=self.kubelet_token, host=kubelet_host)
        self._server = ApiServer(
            registry=self._registry,
            resources=RESOURCES,
            now=now,
            authenticator=authenticator,
            kubelets=self._kubelets,
        )
        self._monitor = NodeMonitor(self._registry, node_monitor or NodeMonitorOptions(), now=now)
        self._reconciler = NodeReconciler(self._registry, now=now)
        self._scheduler = Scheduler(self._registry, now=now)
        self._taint_eviction = TaintEviction(self._registry, now=now)
        self._exit = AsyncExitStack()

    @property
    def url(self) -> str:
        """The URL of the API server, once it listens."""
        scheme = "https" if self._ssl_context else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self._port}"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._create_namespaces()
            stack.push_async_callback(self._kubelets.close)
            listener = await self._listen(stack)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            nodes = GarbageCollector(self._registry, NODES, NODE_DEPENDENTS)
            namespaces = GarbageCollector(self._registry, NAMESPACES, NAMESPACE_CONTENT)
            followers = (self._scheduler, self._taint_eviction)
            following = [follow for one in followers for follow in (one.follow_pods, one.follow_nodes)]
            loops = [self._reconciler.run, self._monitor.run, *following, nodes.run, namespaces.run, listener.run]
            tasks = [group.create_task(loop(), name=loop.__qualname__) for loop in loops]
            for task in tasks:
                stack.callback(task.cancel)
            stack.callback(self.store.close)  # first of all: it ends the watches
            self._exit = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit.aclose()  # without the error, which a task group would wrap

    def _create_namespaces(self) -> None:
        for name in DEFAULT_NAMESPACES:
            if self.store.get(NAMESPACES.key, name) is None:
                self._registry.create(NAMESPACES, "", {"metadata": {"name": name}})

    async def _listen(self, stack: AsyncExitStack) -> LimitListener:
        # A client that goes away ends its watch at once, not at the next event.
        app = self._server.application()
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None  # noqa: S101  setup() has made it
        listener = LimitListener(runner.server, self._host, self._port, self._ssl_context)
        stack.callback(listener.close)
        self._server.on_authenticated = listener.mark_authenticated
        self._port = listener.port
        return listener

    def write_kubeconfig(self, path: Path, *, certificate_authority: str = "") -> None:
        """Write a kubeconfig, readable by its owner only; over TLS with the authority (PEM) of the server."""
        cluster: dict[str, object] = {"server": self.url}
        if certificate_authority:
            cluster["certificate-authority-data"] = base64.b64encode(certificate_authority.encode()).decode()
        elif self._ssl_context:
            cluster["insecure-skip-tls-verify"] = True
        name = "fake-kubelet-demo"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        path.unlink(missing_ok=True)  # a process that has the old file open must not read the token
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(config)) + b"\n")


class LimitListener:
    """Accepts connections for the server, and closes the oldest unauthenticated one when there are too many of them."""

    def __init__(self, server: web.Server, host: str, port: int, ssl_context: ssl.SSLContext | None) -> None:
        self._server = server
        self._ssl_context = ssl_context
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setblocking(False)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._unauthenticated: OrderedDict[asyncio.BaseProtocol, socket.socket] = OrderedDict()
        self.port: int = self._socket.getsockname()[1]

    async def run(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except OSError:  # no file descriptor is left, or the client is gone already
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            task = loop.create_task(self._open(connection))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def mark_authenticated(self, protocol: asyncio.BaseProtocol) -> None:
        """Exempt a connection from the limit: its client has shown the token."""
        self._unauthenticated.pop(protocol, None)

    def close(self) -> None:
        """Stop accepting connections."""
        self._socket.close()
        for task in self._handshakes:
            task.cancel()

    async def _open(self, connection: socket.socket) -> None:
        protocol = self._server()
        self._unauthenticated[protocol] = connection
        if len(self._unauthenticated) > MAX_UNAUTHENTICATED:  # counts closed ones until they are the oldest
            _, oldest = self._unauthenticated.popitem(last=False)
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        limits = {"ssl_handshake_timeout": _HANDSHAKE_SECONDS} if self._ssl_context else {}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, connection, ssl=self._ssl_context, **limits
            )
        except OSError:  # it has ended, or does not speak TLS
            connection.close()
