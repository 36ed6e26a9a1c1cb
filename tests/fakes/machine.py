"""What else of the machine a node has to do with: logind, the service manager, the manifests of static pods."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent.core.pods.static import Manifest
from agent.ports import LogindApi, LogindRefused, LogindSession, ManifestSource, NoLogind, ServiceManager
from tests.fakes.clock import settle


class FakeLogind:
    """A logind that a test makes speak."""

    def __init__(self) -> None:
        self.is_there = True
        self.allows_lock = True
        self.allows_delay = True
        self.delay = 5.0
        self.locks = 0
        self.sessions = 0
        self.late_looks = 0  # how often the old delay is still seen after it was raised
        self._raised: float | None = None
        self._news: asyncio.Queue[bool | None] = asyncio.Queue()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["FakeLogind"]:
        if not self.is_there:
            raise NoLogind("no system bus")
        self.sessions += 1
        try:
            yield self
        finally:
            self.release()

    async def listen(self) -> None:
        pass

    async def next_change(self) -> bool:
        news = await self._news.get()
        if news is None:
            raise NoLogind("the system bus closed the connection")
        return news

    async def delay_seconds(self) -> float:
        if self._raised and self.late_looks:
            self.late_looks -= 1
        elif self._raised:
            self.delay = self._raised
        return self.delay

    async def raise_delay(self, seconds: float) -> None:
        if not self.allows_delay:
            raise LogindRefused("Read-only file system")
        self._raised = seconds

    async def inhibit(self) -> None:
        if not self.allows_lock:
            raise LogindRefused("Inhibit: Permission denied")
        self.locks = 1

    def release(self) -> None:
        self.locks = 0

    async def say(self, news: bool | None) -> None:
        """Report whether the machine goes down; None closes the connection."""
        self._news.put_nowait(news)
        await settle()


class FakeServiceManager:
    """A service manager that only remembers what it was told."""

    def __init__(self) -> None:
        self.listens = True
        self.watchdog_seconds: float | None = 8.0
        self.told: list[tuple[str, ...]] = []

    def notify(self, *assignments: str) -> None:
        self.told.append(assignments)

    def words(self) -> list[str]:
        return [word for told in self.told for word in told]


class FakeManifests:
    """The manifests of static pods, and an error that reading them raises."""

    def __init__(self, *manifests: Manifest) -> None:
        self.manifests = list(manifests)
        self.error: Exception | None = None

    async def read(self) -> Sequence[Manifest]:
        if self.error:
            raise self.error
        return list(self.manifests)


if TYPE_CHECKING:
    _logind: LogindApi = FakeLogind()
    _session: LogindSession = FakeLogind()
    _manager: ServiceManager = FakeServiceManager()
    _manifests: ManifestSource = FakeManifests()
