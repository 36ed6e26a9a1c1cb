"""Keep a store of objects up to date: list once, then watch, and go on after every interruption."""

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from agent.core.metrics import Counter
from agent.core.model import Object
from agent.core.schedule import jittered
from agent.machinery.dependencies import Dependencies
from agent.machinery.health import LoopHealth
from agent.machinery.isolation import Isolation
from agent.machinery.retry import watching
from agent.ports import ApiError, Change, Expired, Unavailable, WatchApi

log = logging.getLogger(__name__)

_LEAST_SECONDS = 300  # as client-go: a watch is asked for 5 to 10 minutes, so that not all end at once
_STEADY_SECONDS = 10.0  # a watch that lived for so long was no failure, however it ended
_FIRST_PAUSE_SECONDS = 0.8
_LONGEST_SILENCE_SECONDS = 30.0


class Store(Protocol):
    """Where a reflector keeps the objects, which are of one kind."""

    def reset(self, objects: Sequence[Any], version: str) -> None:
        """Replace everything by these objects, as of a version."""

    def put(self, obj: Any, /) -> None:
        """Keep an object as it is now."""

    def remove(self, obj: Any, /) -> None:
        """Drop an object that was deleted."""


class Reflector:
    """Lists and watches objects of one kind, and keeps a store up to date, as client-go's."""

    def __init__(
        self,
        kind: str,
        source: WatchApi,
        store: Store,
        *,
        dependencies: Dependencies,
        health: LoopHealth,
        is_primary: bool = True,
    ) -> None:
        self._kind = kind
        self._source = source
        self._store = store
        self._dependencies = dependencies
        self._connectivity = dependencies.connectivity
        self._clock = dependencies.clock
        self._rand = dependencies.rand
        self._health = health
        self._isolation = dependencies.unexpected.isolation("watch" if is_primary else "pods")
        self._is_primary = is_primary
        self._version: str | None = None
        self._fails_since: float | None = None
        self._log_at = 0.0
        self._restarts = dependencies.metrics.register(
            Counter("fake_kubelet_watch_restarts_total", "Watches that failed and were opened again.", ("type",))
        )

    async def run(self) -> None:
        """Follow forever; each round ends with a watch that was good for a while."""
        while True:
            async for attempt in watching(self._dependencies, self._failed, is_primary=self._is_primary):
                with attempt:
                    await self.sync()

    async def sync(self) -> None:
        """List where that is needed, then watch until the server ends it; a watch that was short raises an error."""
        if self._version is None:
            objects, version = await self._source.list()
            self._store.reset(objects, version)
            self._version = version
            self._got_through()
        began = self._clock.monotonic()
        try:
            await self._follow(self._version)
        except ApiError as error:
            is_short = self._clock.monotonic() - began < _STEADY_SECONDS
            if is_short or isinstance(error, Expired):
                self._version = None  # it may be why the watch failed
            if is_short:
                raise
            # All nodes may have lost it at the same moment: none of them comes back at once.
            self._failed(error)
            await self._connectivity.wait_or_recovered(jittered(_FIRST_PAUSE_SECONDS, 1.0, self._rand()))
        else:
            if self._clock.monotonic() - began < 1.0:
                raise Unavailable("the watch ended as soon as it began")

    async def _follow(self, version: str) -> None:
        seconds = round(jittered(_LEAST_SECONDS, 1.0, self._rand()))
        async with aclosing(self._source.watch(version, seconds=seconds)) as changes:
            async for change in changes:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        """Pass a change on; an object that cannot be applied holds up neither the watch nor other objects."""
        if change.kind == "OPENED":
            self._health.settled()
            self._got_through()
            return
        metadata = change.object["metadata"]
        with self._isolation.attempt(object=metadata.get("name"), type=self._kind):
            if change.kind in {"ADDED", "MODIFIED"}:
                self._store.put(change.object)
            elif change.kind == "DELETED":
                self._store.remove(change.object)
        self._version = metadata["resourceVersion"]

    def _got_through(self) -> None:
        if self._fails_since is not None:
            self._fails_since = None
            self._connectivity.notify_recovered()

    def _failed(self, error: ApiError) -> None:
        now = self._clock.monotonic()
        if self._fails_since is None:
            self._fails_since = self._log_at = now
        self._health.failed(error)
        self._restarts.add(self._kind)
        if now >= self._log_at:  # not each time: a primary reflector would drown all other lines
            self._log_at = now + min(max(_FIRST_PAUSE_SECONDS, now - self._fails_since), _LONGEST_SILENCE_SECONDS)
            log.error("Failed to watch", {"err": error, "type": self._kind})


class Demultiplexer:
    """Passes objects on to one store per node, by the node to which each belongs.

    It remembers the node of each object: one that was deleted may come without its spec.
    """

    def __init__(self, node_of: Callable[[Any], str | None], isolation: Isolation) -> None:
        self.stores: dict[str, Store] = {}
        self.is_synced = False
        """Whether the objects have been listed."""
        self._node_of = node_of
        self._isolation = isolation
        self._nodes: dict[str, str] = {}  # by UID

    def reset(self, objects: Sequence[Object], version: str) -> None:
        """Give each store its own objects; one that fails does not keep the others from theirs."""
        self._nodes.clear()
        by_node: dict[str, list[Object]] = {name: [] for name in self.stores}
        for obj in objects:
            name = self._node_of(obj) or ""
            if name in by_node:
                by_node[name].append(obj)
                self._nodes[obj["metadata"]["uid"]] = name
        for name, own in by_node.items():
            with self._isolation.attempt(name, node=name):
                self.stores[name].reset(own, version)
        self.is_synced = True

    def put(self, obj: Object, /) -> None:
        """Keep an object in the store of its node."""
        name = self._node_of(obj) or ""
        if store := self.stores.get(name):
            self._nodes[obj["metadata"]["uid"]] = name
            store.put(obj)

    def remove(self, obj: Object, /) -> None:
        """Drop an object from the store of its node."""
        if store := self.stores.get(self._nodes.pop(obj["metadata"]["uid"], "")):
            store.remove(obj)
