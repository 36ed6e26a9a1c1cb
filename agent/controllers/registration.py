"""Create our Node, or reconcile the one that is there."""

import logging

from agent.controllers.state import NodeState
from agent.core.events import status_events
from agent.core.model import NodeObject
from agent.core.node import new_node, reconcile_patch
from agent.core.nodestatus import is_blank
from agent.core.schedule import jittered
from agent.core.times import format_seconds
from agent.machinery.backoff import Backoff
from agent.machinery.runner import Scheduling
from agent.ports import AlreadyExists, ApiError, Forbidden, LeaseApi, NodeApi, NotFound, Recorder

log = logging.getLogger(__name__)

_BACKOFF_SECONDS = 0.1, 7.0  # as kubelet
_BACKOFF_JITTER = -0.04
# A Node that is deleted again and again, as a cloud controller does with those that it does not know
_RETURN_SECONDS = 0.5, 150.0
_RETURN_JITTER = 1.0  # twice that at most: nodes that were deleted together do not return together
_LONG_LIFE_SECONDS = 600.0
_CONSPICUOUS_RETURNS = 3  # a person who deletes a Node twice knows why it is back


class NodeRegistrar:
    """Sees to it that the Node exists; the status controller calls it while there is none."""

    def __init__(self, state: NodeState, nodes: NodeApi, events: Recorder, scheduling: Scheduling) -> None:
        self._state = state
        self._nodes = nodes
        self._events = events
        self._clock = scheduling.clock
        self._rand = scheduling.dependencies.rand
        self._health = scheduling.health
        self.backoff = Backoff(self._clock, *_BACKOFF_SECONDS, jitter=_BACKOFF_JITTER, rand=self._rand)
        self._registered_at = 0.0
        self._is_created = False  # by the last try
        self._returns = 0  # how often in a row the Node was deleted before it had lived for long
        self._return_at: float | None = None

    async def sync(self) -> float:
        """Create or reconcile the Node once. Returns the seconds until the next try; 0 when the Node is there."""
        if left_seconds := self.backoff.left_seconds or self._return_seconds():
            return left_seconds
        try:
            node = await self._create_or_reconcile()
        except ApiError as error:
            self._health.failed(f"unable to register: {error}")
            log.error("Unable to register node with API server", {"err": error, "node": self._state.name})
            return self.backoff.next(error)
        self.backoff.reset()
        self._return_at = None
        self._registered_at = self._clock.monotonic()
        self._state.register(node["metadata"]["uid"], is_new=self._is_created or is_blank(node))
        self._state.put(node)
        return 0.0

    def _return_seconds(self) -> float:
        """How long a deleted Node stays away still.

        Whoever deleted it may be about to make it again, and what belonged to it is being collected.
        """
        if not self._state.is_deleted or self._is_replaced:
            return 0.0
        now = self._clock.monotonic()
        if self._return_at is None:
            if now - self._registered_at >= _LONG_LIFE_SECONDS:
                self._returns = 0
            first_seconds, most_seconds = _RETURN_SECONDS
            delay_seconds = min(first_seconds * 2.0 ** min(self._returns, 30), most_seconds)
            self._returns += 1
            if self._returns == _CONSPICUOUS_RETURNS:
                log.warning(
                    "Node is deleted again and again soon after it was registered, will register it ever later",
                    {"node": self._state.name, "most": format_seconds(most_seconds * (1 + _RETURN_JITTER))},
                )
            self._return_at = now + jittered(delay_seconds, _RETURN_JITTER, self._rand())
        return max(0.0, self._return_at - now)

    @property
    def _is_replaced(self) -> bool:
        """Whether others have created the Node again that was deleted."""
        return self._state.shown_uid is not None and self._state.is_successor(self._state.shown_uid)

    async def _create_or_reconcile(self) -> NodeObject:
        self._is_created = False
        facts = await self._state.facts({})
        node, desired = new_node(facts)
        log.info("Attempting to register node", {"node": self._state.name})
        self._state.startup.attempted()
        if desired.errors:
            log.error(
                "Failed to set some node status fields", {"err": "; ".join(desired.errors), "node": self._state.name}
            )
        if (self._is_replaced or self._state.asks_less) and (shown := self._state.node()):
            return await self._reconcile(shown, node)
        try:
            registered = await self._nodes.create(node)
            self._is_created = True
        except (AlreadyExists, Forbidden) as refusal:
            registered = await self._reconcile(await self._existing(refusal), node)
            if self._state.is_deleted:
                return registered  # others made it again: the first report sends what is new of its status
        else:
            log.info("Successfully registered node", {"node": self._state.name})
            self._state.startup.registered()
        # kubelet records events of the status that it registers with, whether a Node is there already or not
        for event in status_events(self._state.name, {}, node["status"]):
            self._events.record(event)
        return registered

    async def _existing(self, refusal: ApiError) -> NodeObject:
        try:
            return await self._nodes.get(self._state.name)
        except ApiError:
            # Where creation was forbidden, that is what a person has to know, not that the Node is missing.
            if isinstance(refusal, Forbidden):
                raise refusal from None
            raise

    async def _reconcile(self, existing: NodeObject, fresh: NodeObject) -> NodeObject:
        is_left_to_report = self._state.asks_less and is_blank(existing)
        if not is_left_to_report and (patch := reconcile_patch(existing, fresh)):
            try:
                existing = await self._nodes.patch_status(self._state.name, patch)
            except NotFound:
                self._state.forget()
                raise
        log.info("Node was previously registered", {"node": self._state.name})
        return existing


async def deregister(name: str, *, nodes: NodeApi, leases: LeaseApi) -> None:
    """Delete the Lease and the Node, as far as the credentials allow it, and log what they do not allow."""
    for kind, delete in (
        ("lease", leases.delete),
        ("node", nodes.delete),
    ):  # the Lease first: it is collected with its Node
        try:
            await delete(name)
        except NotFound:
            log.info("Nothing left to deregister", {kind: name})
        except ApiError as error:
            log.error("Unable to deregister", {"err": error, kind: name})
        else:
            log.info("Deregistered", {kind: name})
