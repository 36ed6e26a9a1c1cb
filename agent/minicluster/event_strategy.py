"""Events, in the core API and in its younger view events.k8s.io/v1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.core.model import Object
from agent.minicluster.objects import check_micro_time, check_time
from agent.minicluster.status_errors import StatusCause
from agent.minicluster.strategy import NAME, Column, Resource, Strategy, human_age

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_ALWAYS_WRITTEN: Object = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _NEW_NAMES.items()}


def _to_new(event: Object) -> Object:
    renamed = {_NEW_NAMES.get(field, field): value for field, value in event.items()}
    return renamed | {"apiVersion": "events.k8s.io/v1"}


def _to_core(event: Object) -> Object:
    renamed = {_CORE_NAMES.get(field, field): value for field, value in event.items()}
    return renamed | {"apiVersion": "v1"}


def _decode(event: Object) -> None:
    for field, value in _ALWAYS_WRITTEN.items():
        event.setdefault(field, value)
    check_time(event["firstTimestamp"])
    check_time(event["lastTimestamp"])
    check_micro_time(event["eventTime"])


def _validate(event: Object) -> list[StatusCause]:
    """The namespaces of the event and of its object agree; cluster objects have theirs in `default`."""
    namespace, about = event["metadata"]["namespace"], event["involvedObject"].get("namespace", "")
    allowed = {about} if about else {"default"} if event["eventTime"] is None else {"default", "kube-system"}
    causes = []
    if namespace not in allowed and not (about and event["eventTime"] is not None):
        causes.append(StatusCause.invalid("involvedObject.namespace", about, "does not match event.namespace"))
    if event["eventTime"] is not None:
        needed = ("reportingComponent", "reportingInstance", "action", "reason")
        causes += [StatusCause.required(field) for field in needed if not event.get(field)]
    return causes


def _about(part: str) -> Callable[[Object], str]:
    return lambda event: str(event["involvedObject"].get(part, ""))


def _source(event: Object) -> str:
    return str(event["source"].get("component") or event["reportingComponent"])


def _cells(event: Object, now: datetime) -> list[Any]:
    about, series = event["involvedObject"], event.get("series") or {}
    first = human_age(event["firstTimestamp"] or event["eventTime"], now)
    last = human_age(event["lastTimestamp"], now) if event["lastTimestamp"] else first
    if series:
        last = human_age(series.get("lastObservedTime"), now)
    kind = about.get("kind", "").lower()
    instance = event["source"].get("host") or event["reportingInstance"]
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{_source(event)}, {instance}" if instance else _source(event),
        event.get("message", "").strip(),
        first,
        series.get("count") or event.get("count") or 1,
        event["metadata"]["name"],
    ]


_STRATEGY = Strategy(
    decode=_decode,
    validate=_validate,
    prepare_update=lambda _new, _old: None,
    subresources={},
    create_on_update=True,
)
_COLUMNS = (
    Column(name="Last Seen", description="When it happened last."),
    Column(name="Type", description="Normal or Warning."),
    Column(name="Reason", description="What happened, in one word."),
    Column(name="Object", description="What it happened to."),
    Column(name="Subobject", priority=1, description="Which part of it."),
    Column(name="Source", priority=1, description="Who reports it."),
    Column(name="Message", description="What happened, in a sentence."),
    Column(name="First Seen", priority=1, description="When it happened first."),
    Column(name="Count", priority=1, description="How often it happened."),
    Column(name="Name", priority=1, format="name", description=NAME.description),
)
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELD_LABELS = {
    "reason": lambda event: str(event.get("reason", "")),
    "type": lambda event: str(event.get("type", "")),
    "source": _source,
}

EVENTS = Resource(
    plural="events",
    singular="event",
    kind="Event",
    namespaced=True,
    short_names=("ev",),
    strategy=_STRATEGY,
    field_labels={f"involvedObject.{part}": _about(part) for part in _ABOUT}
    | _FIELD_LABELS
    | {"reportingComponent": lambda event: str(event["reportingComponent"])},
    generic_field_labels=False,
    columns=_COLUMNS,
    cells=_cells,
    bookmark=_ALWAYS_WRITTEN,
)

NEW_EVENTS = Resource(
    group="events.k8s.io",
    plural="events",
    singular="event",
    kind="Event",
    namespaced=True,
    short_names=("ev",),
    strategy=_STRATEGY,
    field_labels={f"regarding.{part}": _about(part) for part in _ABOUT}
    | _FIELD_LABELS
    | {"reportingController": lambda event: str(event["reportingComponent"])},
    generic_field_labels=False,
    columns=_COLUMNS,
    cells=_cells,
    storage_name=EVENTS.key,
    to_wire=_to_new,
    from_wire=_to_core,
)
