"""Watches: the changes of a resource as a stream of JSON lines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from agent.minicluster.errors import expired
from agent.minicluster.store import HistoryExpiredError, StoreClosedError
from agent.minicluster.views import partial, shown, table

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime

    from agent.minicluster.requests import ListOptions
    from agent.minicluster.resource import Object, Resource
    from agent.minicluster.selectors import Predicate
    from agent.minicluster.store import Change, Store
    from agent.minicluster.views import View

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0  # before the end, as upstream: the client resumes from there
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """One watch of one resource, from its first event to its deadline."""

    def __init__(
        self,
        *,
        store: Store,
        resource: Resource,
        namespace: str,
        options: ListOptions,
        view: View,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._resource = resource
        self._options = options
        self._view = view
        self._now = now
        self._namespace = namespace
        self._matches = in_namespace(namespace, options.matches)
        self._columns_sent = False

    async def lines(self) -> AsyncIterator[bytes]:
        """All events, in chunks of whole lines, until the deadline or the end of the store."""
        began = asyncio.get_running_loop().time()
        seen, opening = self._opening()
        if opening:
            yield b"".join(opening)
        next_bookmark = self._bookmark_time(began, began)
        try:
            while (wake_at := self._wake_at(began, next_bookmark)) is None or wake_at > _time():
                await self._wait(seen, wake_at)
                seen, chunk = self._news(seen)
                if self._options.bookmarks and _time() >= next_bookmark:
                    chunk += [self._bookmark(seen)]
                    next_bookmark = self._bookmark_time(began, _time())
                if chunk:
                    yield b"".join(chunk)
        except HistoryExpiredError as gone:
            yield self._line("ERROR", expired(f"too old resource version: {seen} ({gone.oldest})").body())
        except StoreClosedError:
            return

    async def _wait(self, seen: int, wake_at: float | None) -> None:
        """Return at the next change of the resource, or at a time."""
        try:
            async with asyncio.timeout_at(wake_at):
                await self._store.changed(self._resource.stored_as, seen)
        except TimeoutError:
            return

    def _opening(self) -> tuple[int, list[bytes]]:
        """Where to begin, and the events that come before: the present state, when that is asked for."""
        asked, options = self._options.version, self._options
        state_first = not asked if options.initial_events is None else options.initial_events
        if not state_first:
            return (asked or self._store.resource_version), []
        objects = self._store.list(self._resource.stored_as, self._namespace)
        lines = [self._event("ADDED", obj) for obj in objects if self._matches(obj)]
        now = self._store.resource_version
        if options.initial_events and options.bookmarks:
            lines.append(self._bookmark(now, {"annotations": {_INITIAL_EVENTS_END: "true"}}))
        return now, lines

    def _news(self, seen: int) -> tuple[int, list[bytes]]:
        upto = self._store.resource_version
        changes = self._store.changes(self._resource.stored_as, seen)
        events = (self._change(change) for change in changes)
        return max(upto, seen), [event for event in events if event]

    def _change(self, change: Change) -> bytes | None:
        """The event of a change for this watch: an object may enter or leave its selection."""
        was = change.old is not None and self._matches(change.old)
        if change.new is not None and self._matches(change.new):
            return self._event("MODIFIED" if was else "ADDED", change.new)
        if was and change.old is not None:
            metadata = change.old["metadata"] | {"resourceVersion": str(change.version)}
            return self._event("DELETED", change.old | {"metadata": metadata})
        return None

    def _event(self, kind: str, obj: Object) -> bytes:
        if self._view.form != "Table":
            return self._line(kind, shown(self._resource, obj, self._view, self._now()))
        first, self._columns_sent = not self._columns_sent, True
        version = obj["metadata"]["resourceVersion"]
        rows: Sequence[Object] = [obj]
        shape = table(self._resource, rows, self._view, self._now(), version=version, with_columns=first)
        return self._line(kind, shape)

    def _bookmark(self, version: int, extra: Object | None = None) -> bytes:
        """How far this watch has come, in the shape of its objects."""
        metadata = {"resourceVersion": str(version), **(extra or {})}
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._view.form == "Table":
            empty = table(self._resource, [], self._view, self._now(), with_columns=False)
            return self._line("BOOKMARK", empty | {"metadata": metadata})
        return self._line("BOOKMARK", partial(obj) if self._view.form else obj | self._resource.bookmark)

    @staticmethod
    def _line(kind: str, obj: Object) -> bytes:
        return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"

    def _bookmark_time(self, began: float, now: float) -> float:
        regular = now + BOOKMARK_SECONDS
        if self._options.timeout_seconds is None:
            return regular
        last = began + self._options.timeout_seconds - _LAST_BOOKMARK_SECONDS
        return min(regular, last) if last > now else regular

    def _wake_at(self, began: float, next_bookmark: float) -> float | None:
        """When to wake without a change: None is never; a time in the past ends the watch."""
        seconds = self._options.timeout_seconds
        deadline = began + seconds if seconds else None
        if deadline is not None and deadline <= _time():
            return deadline
        if not self._options.bookmarks:
            return deadline
        return next_bookmark if deadline is None else min(deadline, next_bookmark)


def in_namespace(namespace: str, matches: Predicate) -> Predicate:
    """The selection, limited to a namespace when one is given."""
    if not namespace:
        return matches
    return lambda obj: obj["metadata"].get("namespace") == namespace and matches(obj)


def _time() -> float:
    return asyncio.get_running_loop().time()
