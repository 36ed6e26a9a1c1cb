"""Objects as a client asks for them: whole, as metadata only, as rows of a Table, or as the events of a watch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from agent.minicluster.object_store import HistoryExpiredError, StoreClosedError
from agent.minicluster.requests import in_namespace
from agent.minicluster.status_errors import StatusError, expired
from agent.minicluster.strategy import AGE, NAME, human_age

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime

    from agent.core.model import Object
    from agent.minicluster.object_store import ObjectChange, ObjectStore
    from agent.minicluster.requests import ListOptions
    from agent.minicluster.strategy import Column, Resource

BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0  # before the end, as upstream: the client resumes from there
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_META = "meta.k8s.io/v1"
_READABLE = {"application/json", "application/*", "*/*"}


@dataclass(frozen=True, slots=True)
class View:
    """The representation that a client accepts: `form` is "", Table, or PartialObjectMetadata."""

    form: str = ""
    include_object: str = "Metadata"


def negotiate(accept: str, include_object: str = "") -> View:
    """Return the first representation of an Accept header that is served; all are JSON. Raises StatusError (406)."""
    for accepted in accept.split(",") if accept else ["*/*"]:
        media, *parameters = (part.strip() for part in accepted.split(";"))
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        form = options.get("as", "").removesuffix("List")
        if media not in _READABLE or options.get("stream", "watch") != "watch":
            continue
        if form in {"", "Table", "PartialObjectMetadata"}:
            return View(form, include_object or "Metadata")
    message = "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch"
    raise StatusError(406, "NotAcceptable", message, {})


def transform(resource: Resource, obj: Object, view: View, now: datetime) -> Object:
    """Return an object in the representation of the view."""
    if view.form == "Table":
        return as_table(resource, [obj], view, now, version=obj["metadata"].get("resourceVersion", ""))
    if view.form:
        return partial_object_metadata(obj)
    return resource.to_wire(obj) if resource.to_wire else obj


def transform_list(resource: Resource, items: Sequence[Object], metadata: Object, view: View, now: datetime) -> Object:
    """Return a list in the representation of the view."""
    if view.form == "Table":
        return as_table(resource, items, view, now) | {"metadata": metadata}
    if view.form:
        rows = [partial_object_metadata(obj) for obj in items]
        return {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": rows}
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    wire = [resource.to_wire(obj) if resource.to_wire else obj for obj in items]
    omitted = {"kind", "apiVersion"}  # the list has them
    return head | {"items": [{part: obj[part] for part in obj if part not in omitted} for obj in wire]}


def partial_object_metadata(obj: Object) -> Object:
    """Return the metadata of an object alone."""
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
    """Return objects as the rows of a Table; later events of a watch repeat no columns."""
    columns = [_column(column) for column in resource.columns or (NAME, AGE)] if with_columns else []
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
        """Yield the events in chunks of whole lines until the deadline, or until the store is closed."""
        began = asyncio.get_running_loop().time()
        seen, initial = self._initial_events()
        if initial:
            yield b"".join(initial)
        next_bookmark = self._bookmark_time(began, began)
        try:
            while (wake_at := self._wake_at(began, next_bookmark)) is None or wake_at > _time():
                await self._wait(seen, wake_at)
                seen, chunk = self._events_after(seen)
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

    def _initial_events(self) -> tuple[int, list[bytes]]:
        """Return the resourceVersion to watch from, and the present state as events if the client asks for it."""
        options = self._options
        sends_state = not options.version if options.initial_events is None else options.initial_events
        if not sends_state:
            return (options.version or self._store.resource_version), []
        objects = self._store.list(self._resource.stored_as, self._namespace)
        lines = [self._event("ADDED", obj) for obj in objects if self._matches(obj)]
        version = self._store.resource_version
        if options.initial_events and options.bookmarks:
            lines.append(self._bookmark(version, {"annotations": {_INITIAL_EVENTS_END: "true"}}))
        return version, lines

    def _events_after(self, seen: int) -> tuple[int, list[bytes]]:
        upto = self._store.resource_version
        changes = self._store.changes(self._resource.stored_as, seen)
        events = (self._change_event(change) for change in changes)
        return max(upto, seen), [event for event in events if event]

    def _change_event(self, change: ObjectChange) -> bytes | None:
        """Return the event of a change for this watch: an object may enter or leave the selection."""
        was_selected = change.old is not None and self._matches(change.old)
        if change.new is not None and self._matches(change.new):
            return self._event("MODIFIED" if was_selected else "ADDED", change.new)
        if was_selected and change.old is not None:
            metadata = change.old["metadata"] | {"resourceVersion": str(change.version)}
            return self._event("DELETED", change.old | {"metadata": metadata})
        return None

    def _event(self, kind: str, obj: Object) -> bytes:
        if self._view.form != "Table":
            return self._line(kind, transform(self._resource, obj, self._view, self._now()))
        is_first, self._columns_sent = not self._columns_sent, True
        version = obj["metadata"]["resourceVersion"]
        table = as_table(self._resource, [obj], self._view, self._now(), version=version, with_columns=is_first)
        return self._line(kind, table)

    def _bookmark(self, version: int, extra: Object | None = None) -> bytes:
        """Return a BOOKMARK event in the representation of the watched objects."""
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
        """Return when to wake without a change; None means never, and a time in the past ends the watch."""
        seconds = self._options.timeout_seconds
        deadline = began + seconds if seconds else None
        if deadline is not None and deadline <= _time():
            return deadline
        if not self._options.bookmarks:
            return deadline
        return next_bookmark if deadline is None else min(deadline, next_bookmark)


def _time() -> float:
    return asyncio.get_running_loop().time()
