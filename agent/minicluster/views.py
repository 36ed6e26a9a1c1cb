"""How objects are shown: whole, as metadata only, or as the rows of a Table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.minicluster.clock import since
from agent.minicluster.errors import ApiError
from agent.minicluster.kinds.columns import AGE, NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent.minicluster.resource import Column, Object, Resource

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
    raise ApiError(406, "NotAcceptable", message, {})


def shown(resource: Resource, obj: Object, view: View, now: datetime) -> Object:
    """One object, as the client wants it."""
    if view.form == "Table":
        return table(resource, [obj], view, now, version=obj["metadata"].get("resourceVersion", ""))
    if view.form:
        return partial(obj)
    return resource.to_wire(obj) if resource.to_wire else obj


def shown_list(resource: Resource, items: Sequence[Object], metadata: Object, view: View, now: datetime) -> Object:
    """A list, as the client wants it."""
    if view.form == "Table":
        return table(resource, items, view, now) | {"metadata": metadata}
    if view.form:
        rows = [partial(obj) for obj in items]
        return {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": rows}
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    return head | {"items": [_item(resource, obj) for obj in items]}


def _item(resource: Resource, obj: Object) -> Object:
    """An element of a list, which repeats neither kind nor version."""
    wire = resource.to_wire(obj) if resource.to_wire else obj
    return {part: value for part, value in wire.items() if part not in {"kind", "apiVersion"}}


def partial(obj: Object) -> Object:
    """The metadata of an object, alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def table(
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
    return [obj["metadata"]["name"], since(obj["metadata"].get("creationTimestamp"), now)]


def _row_object(resource: Resource, obj: Object, view: View) -> Object | None:
    if view.include_object == "None":
        return None
    if view.include_object == "Object":
        return resource.to_wire(obj) if resource.to_wire else obj
    return partial(obj)


def _column(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
