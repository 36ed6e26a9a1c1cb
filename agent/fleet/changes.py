"""Changes a fleet while it runs: after SIGHUP by its file, or by the counts that `fleet scale` asks for."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from agent.connections import ApiConnections
from agent.core.errors import ConfigError
from agent.core.fleet import Fleet, plans, scaled
from agent.fleet.access import check_names
from agent.fleet.deletion import delete_nodes
from agent.fleet.hosting import HostedFleet
from agent.node import NodeClients
from agent.ports import ApiError, StartError

log = logging.getLogger(__name__)


class FleetChanges:
    """Applies the difference between the fleet that runs and the one that is wanted; one change at a time."""

    def __init__(
        self,
        fleet: Fleet,
        hosted: HostedFleet,
        *,
        connections: ApiConnections,
        clients: NodeClients,
        reread: Callable[[], Fleet] | None,
    ) -> None:
        self.fleet = fleet
        """The fleet that is wanted."""
        self._hosted = hosted
        self._connections = connections
        self._clients = clients
        self._reread = reread
        self._lock = asyncio.Lock()
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Read the file of the fleet again soon."""
        self._requested.set()

    async def run(self) -> None:
        """Apply the file each time that somebody asks for it; a file that is wrong changes nothing."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            if self._reread is None:
                continue
            try:
                log.info("Read the file of the fleet again", {"result": await self._become(self._reread())})
            except (ConfigError, OSError, StartError, ApiError) as error:
                log.error("Unable to change the fleet, keeping what there is", {"err": error})

    async def scale(self, counts: Mapping[str, int]) -> str:
        """Give groups other counts; return what changed. Raises ConfigError, StartError or ApiError."""
        return await self._become(scaled(self.fleet, counts))

    async def _become(self, fleet: Fleet) -> str:
        async with self._lock:
            wanted = list(plans(fleet))
            await check_names(self._connections, fleet.name, (plan.name for plan in wanted))
            self._hosted.check(len(wanted))
            changes = self._hosted.apply(wanted)
            self.fleet = fleet
            await delete_nodes((plan.name for plan in changes.removed), self._clients)
        return f"{len(changes.added)} nodes added, {len(changes.changed)} changed, {len(changes.removed)} removed"
