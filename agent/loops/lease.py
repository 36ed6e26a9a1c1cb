"""Keep the Lease fresh."""

import logging
import random
from contextlib import suppress

from agent.core.config import Config
from agent.core.csinode import is_owned_by
from agent.core.goduration import format_seconds
from agent.core.lease import new_lease, owned, renewed
from agent.core.model import Object
from agent.core.schedule import jittered
from agent.loops.beat import UNHEARD, Beat
from agent.loops.membership import Membership
from agent.loops.retry import ensuring_lease, five_tries
from agent.loops.weather import Weather
from agent.ports import ApiError, Clock, Conflict, LeaseApi, NodeApi, NotFound, Rand

log = logging.getLogger(__name__)

_JITTER = 0.04  # as kubelet


class LeaseLoop:
    """Keeps the Lease fresh, which is how the cluster knows that this node is alive."""

    def __init__(
        self,
        *,
        config: Config,
        leases: LeaseApi,
        nodes: NodeApi,
        membership: Membership,
        weather: Weather,
        clock: Clock,
        beat: Beat = UNHEARD,
        rand: Rand = random.random,
    ) -> None:
        self._name = config.node_name
        self._duration_seconds = config.heartbeat.lease_duration_seconds
        self._period_seconds = config.heartbeat.lease_renew_seconds
        self._leases = leases
        self._nodes = nodes
        self._membership = membership
        self._weather = weather
        self._clock = clock
        self._beat = beat
        self._rand = rand
        self._latest: Object | None = None
        self._served_uid: str | None = None  # the Node at the time of the last try
        self._fails = False

    async def run(self) -> None:
        """Renew forever; cancellation is the only way out."""
        self._latest = None  # after an error that nobody expected: what was read before may be why
        while True:
            self._served_uid = self._membership.uid
            if self._membership.is_gone:
                self._beat.settled()  # a lease of nobody would only be collected
            else:
                await self.sync()
            await self._pause(jittered(self._period_seconds, _JITTER, self._rand()))

    async def _pause(self, seconds: float) -> None:
        """Wait for the next tick, or for a Node that has no lease yet.

        Better than kubelet, whose first lease comes 10 s late: a lease needs its Node, and no more than that.
        """
        end = self._clock.monotonic() + seconds
        while not self._is_called_for() and (left := end - self._clock.monotonic()) > 0:
            await self._clock.wait(self._membership.news, left)

    def _is_called_for(self) -> bool:
        if self._membership.uid in {None, self._served_uid}:
            return False
        return self._latest is None or self._is_of_another_node(self._latest)

    async def sync(self) -> None:
        """Renew once; a failure is logged and left to the next tick."""
        began = self._clock.monotonic()
        if self._latest and self._is_of_another_node(self._latest):
            self._latest = None  # the lease of an earlier Node is collected with it, or will be
            with suppress(ApiError):  # it is still there, or there is a failure, which is told below
                self._latest = await self._leases.create(self._new(str(self._membership.uid)))
                self._got_through(began)
                return
        if self._latest is not None:
            try:
                self._latest = await self._renew(self._latest)
            except ApiError as error:
                log.info("failed to update lease using latest lease, fallback to ensure lease", {"err": error})
            else:
                self._got_through(began)
                return
        self._latest, created = await self._ensure()
        if self._latest is None:
            self._beat.settled()  # there is no Node to be alive
            return
        try:
            self._latest = self._latest if created else await self._renew(self._latest)
        except ApiError as error:
            log.error("Will retry updating lease", {"err": error, "interval": format_seconds(self._period_seconds)})
        else:
            self._got_through(began)

    async def _renew(self, lease: Object) -> Object:
        """Write without reading first, up to five times; after a conflict, from a fresh copy."""
        base: Object | None = lease
        async for attempt in five_tries(self._weather, self._update_failed):
            with attempt:
                if base is None:
                    base, _ = await self._ensure()
                    if base is None:
                        raise NotFound(f'node "{self._name}" not found')
                try:
                    return await self._leases.replace(await self._next(base))
                except Conflict:
                    base = None
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def _next(self, lease: Object) -> Object:
        if not lease["metadata"].get("ownerReferences") or self._is_of_another_node(lease):
            lease = owned(lease, self._name, self._membership.uid or await self._node_uid())
        return renewed(lease, duration_seconds=self._duration_seconds, now=self._clock.now())

    def _is_of_another_node(self, lease: Object) -> bool:
        uid = self._membership.uid
        return uid is not None and not is_owned_by(lease, uid)

    async def _ensure(self) -> tuple[Object | None, bool]:
        """The lease as it is, or a new one, and whether it is new; nothing where there is no Node to own it."""
        async for attempt in ensuring_lease(self._weather, self._ensure_failed):
            with attempt:
                try:
                    return await self._leases.get(self._name), False
                except NotFound:
                    return await self._create()
        raise AssertionError("unreachable: retried without end")

    async def _create(self) -> tuple[Object | None, bool]:
        try:
            uid = await self._node_uid()
        except NotFound as error:
            if self._membership.is_gone or not self._membership.wants_registration:
                log.error(
                    "Failed to get node when trying to set owner ref to the node lease",
                    {"err": error, "node": self._name},
                )
            return None, False
        return await self._leases.create(self._new(uid)), True

    def _new(self, uid: str) -> Object:
        return new_lease(self._name, duration_seconds=self._duration_seconds, owner_uid=uid, now=self._clock.now())

    async def _node_uid(self) -> str:
        """The UID of the Node as it is at this moment, which may be news."""
        try:
            uid: str = (await self._nodes.get(self._name))["metadata"]["uid"]
        except NotFound:
            self._membership.lost()
            raise
        self._membership.seen(uid)
        return uid

    def _got_through(self, began_seconds: float) -> None:
        self._beat.ok(self._clock.monotonic() - began_seconds)
        if self._fails:
            self._fails = False
            self._weather.improved()

    def _update_failed(self, error: ApiError, _: float) -> None:
        self._fails = True
        self._beat.failed(error)
        log.error("Failed to update lease", {"err": error})

    def _ensure_failed(self, error: ApiError, interval_seconds: float) -> None:
        self._fails = True
        self._beat.failed(error)
        log.error(
            "Failed to ensure lease exists, will retry",
            {"err": error, "interval": format_seconds(interval_seconds)},
        )
