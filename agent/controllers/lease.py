"""Renew the node's Lease."""

import logging
from contextlib import suppress

import msgspec

from agent.controllers.state import NodeState
from agent.core.lease import new_lease, owned, renewed
from agent.core.model import LeaseObject
from agent.core.node import is_owned_by
from agent.core.schedule import coalesced, jittered
from agent.core.times import format_seconds
from agent.machinery.backoff import Backoff
from agent.machinery.isolation import Pauses
from agent.machinery.runner import Scheduling
from agent.ports import AlreadyExists, ApiError, Conflict, LeaseApi, NodeApi, NotFound

log = logging.getLogger(__name__)

# kubelet v1.36: component-helpers/apimachinery/lease
_JITTER = 0.04
_UPDATES = 5
_BACKOFF_SECONDS = 0.2, 7.0
_BACKOFF_JITTER = -0.04  # a kubelet's backoff has none: by so much earlier, then, and never later


class LeaseController:
    """Renews the node's Lease, by which the control plane knows that the node is alive."""

    def __init__(
        self,
        state: NodeState,
        *,
        leases: LeaseApi,
        nodes: NodeApi,
        scheduling: Scheduling,
        phase: float = 1.0,
    ) -> None:
        heartbeat = state.config.heartbeat
        self._phase = phase  # the part of a period after which the second renewal comes: nodes of a process spread
        self._duration_seconds = heartbeat.lease_duration_seconds
        self._period_seconds = heartbeat.lease_renew_seconds
        # As a kubelet's for a lease that it cannot ensure, and never longer than the pause between two renewals
        first_seconds, most_seconds = (min(seconds, self._period_seconds) for seconds in _BACKOFF_SECONDS)
        self.isolation = scheduling.isolation(Pauses(first_seconds, most_seconds))
        self._state = state
        self._leases = leases
        self._nodes = nodes
        self._queue = scheduling.queue
        self._connectivity = scheduling.dependencies.connectivity
        self._clock = scheduling.clock
        self._rand = scheduling.dependencies.rand
        self._health = scheduling.health
        self._backoff = Backoff(self._clock, *_BACKOFF_SECONDS, jitter=_BACKOFF_JITTER, rand=self._rand)
        self._latest = b""  # as JSON, a third of the memory of the decoded object
        self._served_uid: str | None = None  # the Node at the time of the last try
        self._created_for: str | None = None  # the Node that we have tried to create a lease for at once
        self._fails = False
        self._began_seconds = 0.0

    def start(self) -> None:
        """Renew for the first time as soon as there is a Node."""
        self._state.on_replaced(self.on_node_replaced)
        self._queue.add(self)

    async def sync(self) -> float:
        """Renew once. Returns the seconds until the next call; a failure is logged and retried with backoff."""
        self._served_uid = self._state.uid
        self._began_seconds = self._clock.monotonic()
        if self._backoff.left_seconds:
            return self._backoff.left_seconds
        if self._state.is_deleted or (self._state.asks_less and self._state.uid is None):
            self._health.settled()  # a lease of nobody would only be collected
            return self._period()
        latest, self._latest = self._latest, b""  # an error that nobody expects forgets it: it may be the cause
        delay_seconds = await self._renew_latest(msgspec.json.decode(latest)) if latest else None
        return await self._ensure_and_renew() if delay_seconds is None else delay_seconds

    async def _renew_latest(self, latest: LeaseObject) -> float | None:
        """Renew what was written last, without reading it; None where it has to be read again."""
        if self._is_of_another_node(latest):  # collected with its Node, or about to be
            with suppress(ApiError):  # it is still there, or there is a failure, which the next step logs
                return self._renewed(await self._leases.create(self._new(str(self._state.uid))))
            return None
        try:
            return self._renewed(await self._renew(latest))
        except ApiError as error:
            if error.retry_after_seconds:
                return self._retry(error)
            log.info("failed to update lease using latest lease, fallback to ensure lease", {"err": error})
            return None

    async def _ensure_and_renew(self) -> float:
        try:
            ensured, is_new = await self._ensure()
        except ApiError as error:
            delay_seconds = self._retry(error)
            interval = format_seconds(self._backoff.interval_seconds)
            log.error("Failed to ensure lease exists, will retry", {"err": error, "interval": interval})
            return delay_seconds
        self._backoff.reset()
        if ensured is None:
            self._health.settled()  # there is no Node to be alive
            return self._period()
        self._latest = msgspec.json.encode(ensured)
        try:
            return self._renewed(ensured if is_new else await self._renew(ensured))
        except ApiError as error:
            if error.retry_after_seconds:
                return self._retry(error)
            log.error("Will retry updating lease", {"err": error, "interval": format_seconds(self._period_seconds)})
            return self._period()

    def on_node_replaced(self) -> None:
        """Renew at once for a Node that has no lease yet.

        Better than kubelet, whose first lease comes 10 s late: a lease needs its Node, and no more than that.
        """
        if self._state.uid in {None, self._served_uid}:
            return
        if not self._latest or self._is_of_another_node(msgspec.json.decode(self._latest)):
            self._queue.add(self)

    async def _renew(self, lease: LeaseObject) -> LeaseObject:
        """Write without reading first, up to five times unless the API server asks for a pause.

        After a conflict the next try begins with a fresh copy.
        """
        base: LeaseObject | None = lease
        for updates_left in reversed(range(_UPDATES)):
            try:
                base = base or (await self._ensure())[0]
                if base is None:
                    raise NotFound(f'node "{self._state.name}" not found')
                return await self._leases.replace(await self._next(base))
            except ApiError as error:
                base = None if isinstance(error, Conflict) else base
                self._failed(error)
                log.error("Failed to update lease", {"err": error})
                if not updates_left or error.retry_after_seconds:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def _next(self, lease: LeaseObject) -> LeaseObject:
        if not lease["metadata"].get("ownerReferences") or self._is_of_another_node(lease):
            lease = owned(lease, self._state.name, self._state.uid or await self._node_uid())
        return renewed(lease, duration_seconds=self._duration_seconds, now=self._clock.now())

    def _is_of_another_node(self, lease: LeaseObject) -> bool:
        uid = self._state.uid
        return uid is not None and not is_owned_by(lease, uid)

    async def _ensure(self) -> tuple[LeaseObject | None, bool]:
        """The lease as it is, or a new one, and whether it is new; nothing where there is no Node to own it.

        A kubelet always looks for the lease and for the Node first; a Node that we have just created has no lease.
        """
        uid = self._state.uid
        if uid and self._state.is_new and uid != self._created_for:
            self._created_for = uid
            with suppress(AlreadyExists):  # of an earlier Node
                return await self._leases.create(self._new(uid)), True
        try:
            return await self._leases.get(self._state.name), False
        except NotFound:
            return await self._create()

    async def _create(self) -> tuple[LeaseObject | None, bool]:
        try:
            uid = await self._node_uid()
        except NotFound as error:
            if self._state.uid is None and (self._state.is_deleted or not self._state.wants_registration):
                log.error(
                    "Failed to get node when trying to set owner ref to the node lease",
                    {"err": error, "node": self._state.name},
                )
            return None, False
        return await self._leases.create(self._new(uid)), True

    def _new(self, uid: str) -> LeaseObject:
        return new_lease(
            self._state.name, duration_seconds=self._duration_seconds, owner_uid=uid, now=self._clock.now()
        )

    async def _node_uid(self) -> str:
        """Read the UID of the Node, which may be another than the cached one.

        A Node that became ours while the request was under way is newer than the answer.
        """
        before = self._state.uid
        try:
            uid = (await self._nodes.get(self._state.name))["metadata"]["uid"]
        except NotFound:
            if self._state.uid == before:
                self._state.forget()
            raise
        if self._state.uid == before:
            self._state.on_uid_shown(uid)
        return uid

    def _period(self) -> float:
        delay_seconds = jittered(self._period_seconds, _JITTER, self._rand())
        if self._phase < 1.0 and self._latest:
            delay_seconds, self._phase = delay_seconds * self._phase, 1.0
            return delay_seconds
        return coalesced(self._clock.monotonic(), self._period_seconds, delay_seconds)

    def _renewed(self, lease: LeaseObject) -> float:
        self._latest = msgspec.json.encode(lease)
        self._backoff.reset()
        self._health.ok(self._clock.monotonic() - self._began_seconds)
        if self._fails:
            self._fails = False
            self._connectivity.notify_recovered()
        return self._period()

    def _retry(self, error: ApiError) -> float:
        self._failed(error)
        delay_seconds = self._backoff.next(error)
        self._connectivity.on_recovered(self._on_recovered)
        return delay_seconds

    def _on_recovered(self, delay_seconds: float) -> None:
        self._backoff.cut_short()
        self._queue.add_after(self, delay_seconds)

    def _failed(self, error: ApiError) -> None:
        self._fails = True
        self._health.failed(error)
