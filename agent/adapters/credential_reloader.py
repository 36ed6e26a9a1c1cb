"""Reload credentials that change while the daemon runs: files, tokens that expire, a server that answers 401."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from agent.adapters.credentials import Credentials, load_credentials
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

_POLL_SECONDS = 5.0  # half a heartbeat: a renewed certificate is in use before the next one is due
_LEAST_SECONDS = 1.0  # a server that answers 401 to everything does not make us read files all the time
_AHEAD = timedelta(seconds=30)

Stamps = tuple[tuple[int, int, int] | None, ...]


class Connection(Protocol):
    """Sends requests with credentials that can be replaced."""

    async def use(self, credentials: Credentials) -> None:
        """Send the next requests with these credentials."""


class CredentialReloader:
    """Gives new credentials to all connections as soon as there are some."""

    def __init__(
        self,
        *,
        kubeconfig: str,
        current: Credentials,
        connections: Sequence[Connection],
        requested: asyncio.Event,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
        pair: Path | None = None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._pair = pair  # a client certificate that is renewed; it wins over that of the kubeconfig
        self._current = current
        self._connections = connections
        self._requested = requested
        self._clock = clock
        self._on_change = on_change
        self._stamps = _stamps(current.files)
        self._pending_stamps: asyncio.Future[Stamps] | None = None
        self._error = ""

    async def run(self) -> None:
        """Look every five seconds, and at once when `requested` is set, until cancelled."""
        while True:
            is_requested = await self._clock.wait(self._requested, _POLL_SECONDS)
            self._requested.clear()
            if is_requested or await self._is_outdated():
                await self.sync()
                await self._clock.sleep(_LEAST_SECONDS)

    async def sync(self) -> None:
        """Load the credentials and use them if they have changed; credentials that do not load change nothing."""
        try:
            loaded = await load_credentials(self._kubeconfig, self._pair)
            self._stamps = await asyncio.to_thread(_stamps, loaded.files)
        except StartError as error:
            if str(error) != self._error:  # logged once, not every five seconds
                self._error = str(error)
                log.error("Unable to reload credentials, keeping those in use", {"err": error})
            return
        self._error = ""
        is_changed = loaded.digest != self._current.digest
        self._current = loaded
        if is_changed:
            log.info("Credentials changed, connecting anew", {"source": loaded.source, "server": loaded.server})
            for connection in self._connections:
                await connection.use(loaded)
            self._on_change()

    async def _is_outdated(self) -> bool:
        expires_at = self._current.expires_at
        if expires_at and self._clock.now() >= expires_at - _AHEAD:
            return True
        return await self._current_stamps() != self._stamps

    async def _current_stamps(self) -> Stamps:
        """Read the stamps of the files; while a disk does not answer, do not start a second read."""
        if self._pending_stamps is None or self._pending_stamps.done():
            run = asyncio.get_running_loop().run_in_executor
            self._pending_stamps = run(None, _stamps, self._current.files)
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                return await asyncio.shield(self._pending_stamps)
        except TimeoutError:
            return self._stamps


def _stamps(files: Sequence[Path]) -> Stamps:
    return tuple(_stamp(path) for path in files)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
