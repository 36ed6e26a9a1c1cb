"""The embedded cluster: an API server and the controllers a node agent depends on, in one process."""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Self

import msgspec
from aiohttp import web

from agent.minicluster.clock import utc_now
from agent.minicluster.controllers import (
    NAMESPACE_CONTENT,
    NODE_DEPENDENTS,
    GarbageCollector,
    NodeHealth,
    NodeUpkeep,
)
from agent.minicluster.kinds import RESOURCES
from agent.minicluster.kinds.namespace import DEFAULT_NAMESPACES, NAMESPACES
from agent.minicluster.kinds.node import NODES
from agent.minicluster.listener import Listener
from agent.minicluster.registry import Registry
from agent.minicluster.server import ApiServer
from agent.minicluster.store import Store

if TYPE_CHECKING:
    import ssl
    from pathlib import Path
    from types import TracebackType

_SHUTDOWN_SECONDS = 0.3


class MiniCluster:
    """A Kubernetes API server in memory, with the node-lifecycle controller's rules.

    Only the bearer of `token` may use it; who names none gets one that nobody can guess. kubectl sends a token over TLS
    alone.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ssl_context: ssl.SSLContext | None = None,
        node_monitor_period_seconds: float = 5.0,
        node_monitor_grace_period_seconds: float = 50.0,
        token: str = "",
        tokens: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store = Store()
        self.token = token or secrets.token_urlsafe(32)
        self._host = host
        self._port = port
        self._ssl_context = ssl_context
        self._registry = Registry(self.store, now=now)
        self._server = ApiServer(
            registry=self._registry,
            resources=RESOURCES,
            now=now,
            host=host,
            token=self.token,
            usernames=tokens or {},
        )
        self._health = NodeHealth(
            self._registry,
            now=now,
            monotonic=monotonic,
            sleep=sleep,
            period_seconds=node_monitor_period_seconds,
            grace_period_seconds=node_monitor_grace_period_seconds,
        )
        self._upkeep = NodeUpkeep(self._registry, now=now)
        self._exit = AsyncExitStack()

    @property
    def url(self) -> str:
        """Where the API server listens, once it does."""
        scheme = "https" if self._ssl_context else "http"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host}:{self._port}"

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._fill()
            listener = await self._listen(stack)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            loops = [*self._loops(), listener.run]
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

    def _fill(self) -> None:
        for name in DEFAULT_NAMESPACES:
            if self.store.get(NAMESPACES.key, name) is None:
                self._registry.create(NAMESPACES, "", {"metadata": {"name": name}})

    async def _listen(self, stack: AsyncExitStack) -> Listener:
        # A client that goes away ends its watch at once, not at the next event.
        app = self._server.application()
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None  # noqa: S101  setup() has made it
        listener = Listener(runner.server, self._host, self._port, self._ssl_context)
        stack.callback(listener.close)
        self._server.on_authenticated = listener.trust
        self._port = listener.port
        return listener

    def _loops(self) -> list[Callable[[], Coroutine[None, None, None]]]:
        nodes = GarbageCollector(self._registry, NODES, NODE_DEPENDENTS)
        namespaces = GarbageCollector(self._registry, NAMESPACES, NAMESPACE_CONTENT)
        return [self._upkeep.run, self._health.run, nodes.run, namespaces.run]

    def write_kubeconfig(self, path: Path, *, certificate_authority: str = "") -> None:
        """Write a kubeconfig, readable by its owner only; over TLS with the authority (PEM) that vouches for us."""
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
        path.unlink(missing_ok=True)  # whoever has it open would read the token
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(config)) + b"\n")
