"""Create the CSINode, without which the node is not ready."""

import logging
from contextlib import suppress

from agent.core.csinode import is_owned_by, new_csinode
from agent.core.model import Object
from agent.loops.membership import Membership
from agent.loops.readiness import Readiness
from agent.loops.retry import registering
from agent.loops.weather import Weather
from agent.machinery.health import UNHEARD, Beat
from agent.ports import ApiError, CSINodeApi, NotFound

log = logging.getLogger(__name__)

_SUBJECT = "storage"


class CSINodeLoop:
    """Sees to it that the CSINode exists and belongs to our Node, once in the life of each Node."""

    def __init__(
        self,
        *,
        node_name: str,
        csinodes: CSINodeApi,
        readiness: Readiness,
        membership: Membership,
        weather: Weather,
        beat: Beat = UNHEARD,
    ) -> None:
        self._name = node_name
        self._csinodes = csinodes
        self._readiness = readiness
        self._membership = membership
        self._weather = weather
        self._beat = beat

    async def run(self) -> None:
        """Wait for a Node, then try until its CSINode is there; and again for the next Node."""
        while True:
            self._readiness.block(_SUBJECT, "CSINode is not yet initialized")
            if self._membership.uid is None:
                self._beat.settled()
            uid = await self._membership.other_than(None)
            async for attempt in registering(self._weather, self._failed):
                with attempt:
                    await self.sync()
            if uid == self._membership.uid:
                self._readiness.clear(_SUBJECT)
                self._beat.settled()
                await self._membership.other_than(uid)

    async def sync(self) -> None:
        """Create the CSINode, or replace one that belonged to an earlier Node of this name."""
        uid = self._membership.uid
        if uid is None:
            return
        existing = await self._existing()
        if existing and is_owned_by(existing, uid):
            return
        if existing:
            with suppress(NotFound):  # collected with the Node that owned it
                await self._csinodes.delete(self._name)
        await self._csinodes.create(new_csinode(self._name, uid))

    async def _existing(self) -> Object | None:
        try:
            return await self._csinodes.get(self._name)
        except NotFound:
            return None

    def _failed(self, error: ApiError, _: float) -> None:
        self._beat.failed(error)
        log.error("Failed to initialize CSINode", {"err": error, "node": self._name})
