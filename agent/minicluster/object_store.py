"""All objects and their recent history, in memory."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.core.model import Object

FIRST_RESOURCE_VERSION = 100  # so that a client's "1" is in the past, as on a cluster that has lived a while


class StoreClosedError(Exception):
    """The store will not change any more."""


class HistoryExpiredError(Exception):
    """The changes asked for are no longer remembered."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history begins after {oldest}")
        self.oldest = oldest


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object before and after; `old` is None when it was created, `new` when it was deleted."""

    version: int
    old: Object | None
    new: Object | None


class ObjectStore:
    """Objects by resource, namespace and name; each write gets the next resourceVersion.

    Objects are shared, not copied: whoever reads one must not change it.
    """

    def __init__(self, *, history_length: int = 4096) -> None:
        self._history_length = history_length
        self._objects: defaultdict[str, dict[tuple[str, str], Object]] = defaultdict(dict)
        self._history: defaultdict[str, list[ObjectChange]] = defaultdict(list)
        self._oldest: defaultdict[str, int] = defaultdict(lambda: FIRST_RESOURCE_VERSION)
        self._latest: defaultdict[str, int] = defaultdict(lambda: FIRST_RESOURCE_VERSION)
        self._waiters: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._closed = False
        self.resource_version = FIRST_RESOURCE_VERSION

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None; `resource` is `nodes` or `leases.coordination.k8s.io`."""
        return self._objects[resource].get((namespace, name))

    def list(self, resource: str, namespace: str = "") -> Sequence[Object]:
        """All objects of a resource in the order of their keys, of one namespace or of all."""
        objects = self._objects[resource]
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def put(self, resource: str, obj: Object) -> Object:
        """Store a new state of an object, under the next resourceVersion."""
        stored = self._stamped(obj)
        key = _key(stored)
        old = self._objects[resource].get(key)
        self._objects[resource][key] = stored
        self._remember(resource, old, stored)
        return stored

    def remove(self, resource: str, obj: Object) -> Object:
        """Forget an object; the answer is its last state, under the next resourceVersion."""
        last = self._stamped(obj)
        self._objects[resource].pop(_key(obj), None)
        self._remember(resource, last, None)
        return last

    def changes(self, resource: str, after: int) -> Sequence[ObjectChange]:
        """What happened to a resource after a resourceVersion."""
        if after < self._oldest[resource]:
            raise HistoryExpiredError(self._oldest[resource])
        history = self._history[resource]
        return history[bisect_right(history, after, key=lambda change: change.version) :]

    async def changed(self, resource: str, after: int) -> None:
        """Return when a resource has a change after a resourceVersion."""
        while self._latest[resource] <= after:
            if self._closed:
                raise StoreClosedError
            waiter = asyncio.get_running_loop().create_future()
            self._waiters[resource].add(waiter)
            try:
                await waiter
            finally:
                self._waiters[resource].discard(waiter)

    def close(self) -> None:
        """End all waiting."""
        self._closed = True
        for resource in list(self._waiters):
            self._wake(resource)

    def _stamped(self, obj: Object) -> Object:
        self.resource_version += 1
        return obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.resource_version)}}

    def _remember(self, resource: str, old: Object | None, new: Object | None) -> None:
        history = self._history[resource]
        history.append(ObjectChange(self.resource_version, old, new))
        if len(history) >= 2 * self._history_length:  # in batches: deleting the head of a list is not free
            self._oldest[resource] = history[self._history_length - 1].version
            del history[: self._history_length]
        self._latest[resource] = self.resource_version
        self._wake(resource)

    def _wake(self, resource: str) -> None:
        for waiter in self._waiters[resource]:
            if not waiter.done():
                waiter.set_result(None)


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
