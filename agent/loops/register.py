"""Create our Node, or reconcile the one already there."""

import logging

from agent.core.events import status_events
from agent.core.model import Object
from agent.core.node import new_node, reconcile_patch
from agent.loops.membership import Membership
from agent.loops.observe import Observer
from agent.loops.ownnode import OwnNode
from agent.loops.retry import registering
from agent.loops.startup import Startup
from agent.loops.weather import Weather
from agent.machinery.health import UNHEARD, Beat
from agent.ports import AlreadyExists, ApiError, Forbidden, NodeApi, NotFound, Recorder

log = logging.getLogger(__name__)

_COURTESY_SECONDS = 0.5  # twice that at most: nodes that were deleted together do not return together


class Registrar:
    """Sees to it that the Node exists."""

    def __init__(
        self,
        *,
        node_name: str,
        nodes: NodeApi,
        observer: Observer,
        events: Recorder,
        own: OwnNode,
        membership: Membership,
        weather: Weather,
        beat: Beat = UNHEARD,
        startup: Startup | None = None,
    ) -> None:
        self._name = node_name
        self._nodes = nodes
        self._observer = observer
        self._events = events
        self._own = own
        self._membership = membership
        self._weather = weather
        self._beat = beat
        self._startup = startup

    async def register(self) -> bool:
        """Try without end until the Node is there; whether there was anything to do."""
        if not self._membership.wants_registration:
            return False
        if self._membership.is_gone:
            # Whoever deleted it may be about to make it again, and what belonged to it is being collected.
            await self._weather.sit_out(self._weather.spread(_COURTESY_SECONDS, 1.0))
        async for attempt in registering(self._weather, self._failed):
            with attempt:
                node = await self._create_or_reconcile()
                self._membership.joined(node["metadata"]["uid"])
                self._own.put(node)
        return True

    async def _create_or_reconcile(self) -> Object:
        facts = await self._observer.facts({})
        node, desired = new_node(facts)
        log.info("Attempting to register node", {"node": self._name})
        if self._startup:
            self._startup.attempted()
        if desired.errors:
            log.error("Failed to set some node status fields", {"err": "; ".join(desired.errors), "node": self._name})
        shown = self._own.node
        if shown and self._membership.is_successor(shown["metadata"]["uid"]):
            return await self._reconcile(shown, node)
        try:
            registered = await self._nodes.create(node)
        except (AlreadyExists, Forbidden) as refusal:
            registered = await self._reconcile(await self._existing(refusal), node)
            if self._membership.is_gone:
                return registered  # others made it again: the first report tells what is new of its status
        else:
            log.info("Successfully registered node", {"node": self._name})
            if self._startup:
                self._startup.registered()
        # kubelet tells the status that it registers with, whether a Node is there already or not
        for event in status_events(self._name, {}, node["status"]):
            self._events.record(event)
        return registered

    async def _existing(self, refusal: ApiError) -> Object:
        try:
            return await self._nodes.get(self._name)
        except ApiError:
            # Where creation was forbidden, that is what a person has to know, not that the Node is missing.
            if isinstance(refusal, Forbidden):
                raise refusal from None
            raise

    async def _reconcile(self, existing: Object, fresh: Object) -> Object:
        if patch := reconcile_patch(existing, fresh):
            try:
                existing = await self._nodes.patch_status(self._name, patch)
            except NotFound:
                self._own.forget()
                raise
        log.info("Node was previously registered", {"node": self._name})
        return existing

    def _failed(self, error: ApiError, _: float) -> None:
        self._beat.failed(f"unable to register: {error}")
        log.error("Unable to register node with API server", {"err": error, "node": self._name})
