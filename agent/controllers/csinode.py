"""Create the node's CSINode, without which the node is not ready."""

import logging
from contextlib import suppress
from math import inf

from agent.controllers.state import NodeState
from agent.core.model import CSINodeObject
from agent.core.node import is_owned_by, new_csinode
from agent.machinery.backoff import Backoff
from agent.machinery.runner import Scheduling
from agent.ports import AlreadyExists, ApiError, CSINodeApi, NotFound

log = logging.getLogger(__name__)

_SUBJECT = "storage"
_BACKOFF_SECONDS = 0.1, 7.0  # as kubelet's registration
_BACKOFF_JITTER = -0.04


class CSINodeController:
    """Creates the CSINode once in the life of each Node; until then the node is not ready."""

    def __init__(
        self,
        state: NodeState,
        csinodes: CSINodeApi,
        *,
        scheduling: Scheduling,
    ) -> None:
        self.isolation = scheduling.isolation()
        self._state = state
        self._csinodes = csinodes
        self._queue = scheduling.queue
        self._connectivity = scheduling.dependencies.connectivity
        self._health = scheduling.health
        self._backoff = Backoff(
            scheduling.clock, *_BACKOFF_SECONDS, jitter=_BACKOFF_JITTER, rand=scheduling.dependencies.rand
        )
        self._served_uid: str | None = None  # the Node whose CSINode is there

    def start(self) -> None:
        """Keep the node from being ready, and begin with the first Node there is."""
        self._state.on_replaced(self.on_node_replaced)
        self.on_node_replaced()

    def on_node_replaced(self) -> None:
        """The node is not ready before a new Node has its CSINode."""
        if self._state.uid is None or self._state.uid != self._served_uid:
            self._served_uid = None
            self._state.block(_SUBJECT, "CSINode is not yet initialized")
            self._queue.add(self)

    async def sync(self) -> float:
        """Create the CSINode of the Node if there is none. Returns infinity when there is nothing left to do."""
        uid = self._state.uid
        if self._backoff.left_seconds:
            return self._backoff.left_seconds
        if uid is None or uid == self._served_uid:
            self._health.settled()
            return inf
        try:
            await self._ensure(uid)
        except ApiError as error:
            self._health.failed(error)
            log.error("Failed to initialize CSINode", {"err": error, "node": self._state.name})
            self._connectivity.on_recovered(self._on_recovered)
            return self._backoff.next(error)
        self._backoff.reset()
        if uid == self._state.uid:
            self._served_uid = uid
            self._state.clear(_SUBJECT)
            self._health.settled()
        return inf

    async def _ensure(self, uid: str) -> None:
        """Create the CSINode, or replace one that belonged to an earlier Node of this name.

        Better than kubelet, which always looks first: thousands of nodes that start ask for thousands of objects less.
        """
        if self._state.is_new:
            with suppress(AlreadyExists):  # of an earlier Node
                await self._csinodes.create(new_csinode(self._state.name, uid))
                return
        existing = await self._existing()
        if existing and is_owned_by(existing, uid):
            return
        if existing:
            with suppress(NotFound):  # collected with the Node that owned it
                await self._csinodes.delete(self._state.name)
        await self._csinodes.create(new_csinode(self._state.name, uid))

    async def _existing(self) -> CSINodeObject | None:
        try:
            return await self._csinodes.get(self._state.name)
        except NotFound:
            return None

    def _on_recovered(self, delay_seconds: float) -> None:
        self._backoff.cut_short()
        self._queue.add_after(self, delay_seconds)
