"""Create the node's CSINode, without which the node is not ready."""

import logging
import random
from contextlib import suppress
from math import inf

from agent.core.csinode import is_owned_by, new_csinode
from agent.core.model import Object
from agent.loops.membership import Membership
from agent.loops.readiness import Readiness
from agent.loops.weather import Weather
from agent.machinery.backoff import Backoff
from agent.machinery.health import UNHEARD, Beat
from agent.machinery.isolation import Isolation
from agent.machinery.runner import Controller
from agent.machinery.workqueue import WorkQueue
from agent.ports import ApiError, Clock, CSINodeApi, NotFound, Rand

log = logging.getLogger(__name__)

_SUBJECT = "storage"
_BACKOFF_SECONDS = 0.1, 7.0  # as kubelet's registration
_BACKOFF_JITTER = -0.04


class CSINodeController:
    """Creates the CSINode once in the life of each Node; until then the node is not ready."""

    def __init__(
        self,
        *,
        node_name: str,
        csinodes: CSINodeApi,
        readiness: Readiness,
        membership: Membership,
        weather: Weather,
        clock: Clock,
        isolation: Isolation,
        queue: WorkQueue[Controller],
        beat: Beat = UNHEARD,
        rand: Rand = random.random,
    ) -> None:
        self.isolation = isolation
        self._name = node_name
        self._csinodes = csinodes
        self._readiness = readiness
        self._membership = membership
        self._weather = weather
        self._queue = queue
        self._beat = beat
        self._backoff = Backoff(clock, *_BACKOFF_SECONDS, jitter=_BACKOFF_JITTER, rand=rand)
        self._served_uid: str | None = None  # the Node whose CSINode is there

    def start(self) -> None:
        """Keep the node from being ready, and begin with the first Node there is."""
        self._membership.subscribe(self.on_node_changed)
        self.on_node_changed()

    def on_node_changed(self) -> None:
        """The node is not ready before a new Node has its CSINode."""
        if self._membership.uid is None or self._membership.uid != self._served_uid:
            self._served_uid = None
            self._readiness.block(_SUBJECT, "CSINode is not yet initialized")
            self._queue.add(self)

    async def sync(self) -> float:
        """Create the CSINode of the Node if there is none. Returns infinity when there is nothing left to do."""
        uid = self._membership.uid
        if self._backoff.left_seconds:
            return self._backoff.left_seconds
        if uid is None or uid == self._served_uid:
            self._beat.settled()
            return inf
        try:
            await self._ensure(uid)
        except ApiError as error:
            self._beat.failed(error)
            log.error("Failed to initialize CSINode", {"err": error, "node": self._name})
            self._weather.on_recovered(self._on_recovered)
            return self._backoff.next(error)
        self._backoff.reset()
        if uid == self._membership.uid:
            self._served_uid = uid
            self._readiness.clear(_SUBJECT)
            self._beat.settled()
        return inf

    async def _ensure(self, uid: str) -> None:
        """Create the CSINode, or replace one that belonged to an earlier Node of this name."""
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

    def _on_recovered(self) -> None:
        self._backoff.cut_short()
        self._queue.add(self)
