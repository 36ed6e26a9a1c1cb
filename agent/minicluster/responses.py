"""Objects as a client asks for them: whole, as metadata only, as rows of a Table, or as the events of a watch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from agent.minicluster.object_store import HistoryExpiredError, StoreClosedError
from agent.minicluster.status_errors import StatusError, expired
from agent.minicluster.strategy import AGE, NAME, human_age

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime

    from agent.core.model import Object
    from agent.minicluster.object_store import ObjectChange, ObjectStore
    from agent.minicluster.requests import ListOptions, Predicate
    from agent.minicluster.strategy import Column, Resource

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0  # before the end, as upstream: the client resumes from there
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_META = "meta.k8s.io/v1"
_READABLE = {"application/json", "application/*", "*/*"}


@dataclass(frozen=True, slots=True)
class View:
    """The representation a client wants: `form` is "", Table, or PartialObjectMetadata."""

    form: str = ""
    include_object: str = "Metadata"


def negotiate(accept: str, include_object: str = "") -> View:
    """The first representation of an Accept header that we can write; we write JSON only."""
    for wanted in accept.split(",") if accept else ["*/*"]:
        media, *parameters = (part.strip() for part in wanted.split(";"))
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        form = options.get("as", "").removesuffix("List")
        if media not in _READABLE or options.get("stream", "watch") != "watch":
            continue
        if form in {"", "Table", "PartialObjectMetadata"}:
            return View(form, include_object or "Metadata")
    message = "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch"
    raise StatusError(406, "NotAcceptable", message, {})


def transform(resource: Resource, obj: Object, view: View, now: datetime) -> Object:
    """One object, as the client wants it."""
    if view.form == "Table":
        return as_table(resource, [obj], view, now, version=obj["metadata"].get("resourceVersion", ""))
    if view.form:
        return partial_object_metadata(obj)
    return resource.to_wire(obj) if resource.to_wire else obj


def transform_list(resource: Resource, items: Sequence[Object], metadata: Object, view: View, now: datetime) -> Object:
    """A list, as the client wants it."""
    if view.form == "Table":
        return as_table(resource, items, view, now) | {"metadata": metadata}
    if view.form:
        rows = [partial_object_metadata(obj) for obj in items]
        return {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": rows}
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    return head | {"items": [_item(resource, obj) for obj in items]}


def _item(resource: Resource, obj: Object) -> Object:
    """An element of a list, which repeats neither kind nor version."""
    wire = resource.to_wire(obj) if resource.to_wire else obj
    return {part: value for part, value in wire.items() if part not in {"kind", "apiVersion"}}


def partial_object_metadata(obj: Object) -> Object:
    """The metadata of an object, alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def as_table(
    resource: Resource,
    items: Sequence[Object],
    view: View,
    now: datetime,
    *,
    version: str = "",
    with_columns: bool = True,
) -> Object:
    """Objects as rows; later events of a watch repeat no columns."""
    columns = [_column(one) for one in resource.columns or (NAME, AGE)] if with_columns else []
    rows = [{"cells": _cells(resource, obj, now), "object": _row_object(resource, obj, view)} for obj in items]
    head = {"kind": "Table", "apiVersion": _META, "metadata": {"resourceVersion": version} if version else {}}
    return head | {"columnDefinitions": columns, "rows": rows}


def _cells(resource: Resource, obj: Object, now: datetime) -> list[Any]:
    if resource.cells:
        return resource.cells(obj, now)
    return [obj["metadata"]["name"], human_age(obj["metadata"].get("creationTimestamp"), now)]


def _row_object(resource: Resource, obj: Object, view: View) -> Object | None:
    if view.include_object == "None":
        return None
    if view.include_object == "Object":
        return resource.to_wire(obj) if resource.to_wire else obj
    return partial_object_metadata(obj)


def _column(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


class Watch:
    """One watch of one resource, from its first event to its deadline."""

    def __init__(
        self,
        *,
        store: ObjectStore,
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

    def _change(self, change: ObjectChange) -> bytes | None:
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
            return self._line(kind, transform(self._resource, obj, self._view, self._now()))
        first, self._columns_sent = not self._columns_sent, True
        version = obj["metadata"]["resourceVersion"]
        rows: Sequence[Object] = [obj]
        shape = as_table(self._resource, rows, self._view, self._now(), version=version, with_columns=first)
        return self._line(kind, shape)

    def _bookmark(self, version: int, extra: Object | None = None) -> bytes:
        """How far this watch has come, in the shape of its objects."""
        metadata = {"resourceVersion": str(version), **(extra or {})}
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._view.form == "Table":
            empty = as_table(self._resource, [], self._view, self._now(), with_columns=False)
            return self._line("BOOKMARK", empty | {"metadata": metadata})
        return self._line(
            "BOOKMARK", partial_object_metadata(obj) if self._view.form else obj | self._resource.bookmark
        )

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
