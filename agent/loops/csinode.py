"""Create the CSINode, without which the node is not ready."""

import asyncio
import logging

from agent.core.csinode import is_owned_by, new_csinode
from agent.core.model import Object
from agent.loops.readiness import Readiness
from agent.loops.retry import registering
from agent.ports import ApiError, Clock, CSINodeApi, NodeApi, NotFound

log = logging.getLogger(__name__)

_SUBJECT = "storage"


class CSINodeLoop:
    """Sees to it that the CSINode exists and belongs to our Node, once."""

    def __init__(
        self,
        *,
        node_name: str,
        csinodes: CSINodeApi,
        nodes: NodeApi,
        readiness: Readiness,
        registered: asyncio.Event,
        clock: Clock,
    ) -> None:
        self._name = node_name
        self._csinodes = csinodes
        self._nodes = nodes
        self._readiness = readiness
        self._registered = registered
        self._clock = clock

    async def run(self) -> None:
        """Wait for the Node, then try until the CSINode is there."""
        self._readiness.block(_SUBJECT, "CSINode is not yet initialized")
        await self._registered.wait()
        async for attempt in registering(self._clock, self._failed):
            with attempt:
                await self.sync()
        self._readiness.clear(_SUBJECT)

    async def sync(self) -> None:
        """Create the CSINode, or replace one that belonged to an earlier Node of this name."""
        uid = (await self._nodes.get(self._name))["metadata"]["uid"]
        existing = await self._existing()
        if existing and is_owned_by(existing, uid):
            return
        if existing:
            await self._csinodes.delete(self._name)
        await self._csinodes.create(new_csinode(self._name, uid))

    async def _existing(self) -> Object | None:
        try:
            return await self._csinodes.get(self._name)
        except NotFound:
            return None

    def _failed(self, error: ApiError, _: float) -> None:
        log.error("Failed to initialize CSINode", {"err": error, "node": self._name})
