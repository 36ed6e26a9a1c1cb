"""The embedded cluster in a thread of its own, so that it can be asked as any other API server."""

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from agent.minicluster import MiniCluster
from tests.cluster.api import Api, Identity

_PATIENCE_SECONDS = 120
_CLOSING_SECONDS = 0.1  # connections that are being closed need the loop for a moment


class EmbeddedCluster:
    """A MiniCluster with the given options, over TLS if there is a context for that."""

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None, **options: Any) -> None:
        self._is_tls, self._options = ssl_context is not None, {"ssl_context": ssl_context, **options}
        self._loop, self._end = asyncio.new_event_loop(), asyncio.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),), name="embedded")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._began.wait(_PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()

    @property
    def api(self) -> Api:
        """Its API server, with full rights."""
        headers = {"Authorization": f"Bearer {self._cluster.token}"}
        return Api(urlsplit(self._cluster.url).port or 0, Identity("admin", headers=headers, is_tls=self._is_tls))

    def write_kubeconfig(self, path: Path, *, certificate_authority: str = "") -> None:
        """A kubeconfig for whoever needs a file."""
        self._cluster.write_kubeconfig(path, certificate_authority=certificate_authority)

    async def _run(self) -> None:
        async with MiniCluster(**self._options) as self._cluster:
            self._began.set()
            await self._end.wait()
        await asyncio.sleep(_CLOSING_SECONDS)
