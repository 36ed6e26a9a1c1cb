"""Keep the Lease fresh."""

import asyncio
import logging
import random

from agent.core.config import Config
from agent.core.goduration import format_seconds
from agent.core.lease import new_lease, owned, renewed
from agent.core.model import Object
from agent.core.schedule import jittered
from agent.loops.retry import ensuring_lease, five_tries
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
        registered: asyncio.Event,
        clock: Clock,
        rand: Rand = random.random,
    ) -> None:
        self._name = config.node_name
        self._duration_seconds = config.heartbeat.lease_duration_seconds
        self._period_seconds = config.heartbeat.lease_renew_seconds
        self._leases = leases
        self._nodes = nodes
        self._registered = registered
        self._clock = clock
        self._rand = rand
        self._latest: Object | None = None

    async def run(self) -> None:
        """Renew forever; cancellation is the only way out."""
        while True:
            await self.sync()
            pause_seconds = jittered(self._period_seconds, _JITTER, self._rand())
            if self._latest is None and not self._registered.is_set():
                # Better than kubelet, whose first lease comes 10 s late: a lease needs its Node, so wait for that.
                await self._clock.wait(self._registered, pause_seconds)
            else:
                await self._clock.sleep(pause_seconds)

    async def sync(self) -> None:
        """Renew once; a failure is logged and left to the next tick."""
        if self._latest is not None:
            try:
                self._latest = await self._renew(self._latest)
            except ApiError as error:
                log.info("failed to update lease using latest lease, fallback to ensure lease", {"err": error})
            else:
                return
        lease, created = await self._ensure()
        self._latest = lease
        if lease is None or created:
            return
        try:
            self._latest = await self._renew(lease)
        except ApiError as error:
            log.error("Will retry updating lease", {"err": error, "interval": format_seconds(self._period_seconds)})

    async def _renew(self, lease: Object) -> Object:
        """Write without reading first, up to five times; after a conflict, from a fresh copy."""
        base: Object | None = lease
        async for attempt in five_tries(self._clock, self._update_failed):
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
        if not lease["metadata"].get("ownerReferences"):
            lease = owned(lease, self._name, await self._node_uid())
        return renewed(lease, duration_seconds=self._duration_seconds, now=self._clock.now())

    async def _ensure(self) -> tuple[Object | None, bool]:
        """The lease as it is, or a new one, and whether it is new; nothing where there is no Node to own it."""
        async for attempt in ensuring_lease(self._clock, self._ensure_failed):
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
            if self._registered.is_set():
                log.error(
                    "Failed to get node when trying to set owner ref to the node lease",
                    {"err": error, "node": self._name},
                )
            return None, False
        lease = new_lease(self._name, duration_seconds=self._duration_seconds, owner_uid=uid, now=self._clock.now())
        return await self._leases.create(lease), True

    async def _node_uid(self) -> str:
        uid: str = (await self._nodes.get(self._name))["metadata"]["uid"]
        return uid

    def _update_failed(self, error: ApiError, _: float) -> None:
        log.error("Failed to update lease", {"err": error})

    def _ensure_failed(self, error: ApiError, interval_seconds: float) -> None:
        log.error(
            "Failed to ensure lease exists, will retry",
            {"err": error, "interval": format_seconds(interval_seconds)},
        )
