"""Credentials that change while we run: files on disk, tokens that expire, a server that no longer knows us."""

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
    """What speaks with credentials."""

    async def use(self, credentials: Credentials) -> None:
        """Speak with these from now on."""


class Rotation:
    """Gives the lanes new credentials as soon as there are some."""

    def __init__(
        self,
        *,
        kubeconfig: str,
        current: Credentials,
        lanes: Sequence[Connection],
        asked: asyncio.Event,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
        pair: Path | None = None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._pair = pair  # a certificate that is renewed, whatever the kubeconfig has
        self._current = current
        self._lanes = lanes
        self._asked = asked
        self._clock = clock
        self._on_change = on_change
        self._stamps = _stamps(current.files)
        self._looking: asyncio.Future[Stamps] | None = None
        self._fault = ""

    async def run(self) -> None:
        """Look every few seconds, and at once when asked."""
        while True:
            asked = await self._clock.wait(self._asked, _POLL_SECONDS)
            self._asked.clear()
            if asked or await self._is_outdated():
                await self.sync()
                await self._clock.sleep(_LEAST_SECONDS)

    async def sync(self) -> None:
        """Read the credentials again and use them if they differ; those that do not load change nothing."""
        try:
            fresh = await load_credentials(self._kubeconfig, self._pair)
            self._stamps = await asyncio.to_thread(_stamps, fresh.files)
        except StartError as error:
            if str(error) != self._fault:  # said once, not every five seconds
                self._fault = str(error)
                log.error("Unable to reload credentials, keeping those in use", {"err": error})
            return
        self._fault = ""
        changed = fresh.digest != self._current.digest
        self._current = fresh
        if changed:
            log.info("Credentials changed, connecting anew", {"source": fresh.source, "server": fresh.server})
            for lane in self._lanes:
                await lane.use(fresh)
            self._on_change()

    async def _is_outdated(self) -> bool:
        expires_at = self._current.expires_at
        if expires_at and self._clock.now() >= expires_at - _AHEAD:
            return True
        return await self._look() != self._stamps

    async def _look(self) -> Stamps:
        """The files as they are now; a disk that does not answer is not asked twice."""
        if self._looking is None or self._looking.done():
            run = asyncio.get_running_loop().run_in_executor
            self._looking = run(None, _stamps, self._current.files)
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                return await asyncio.shield(self._looking)
        except TimeoutError:
            return self._stamps


def _stamps(files: Sequence[Path]) -> Stamps:
    return tuple(_stamp(path) for path in files)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
