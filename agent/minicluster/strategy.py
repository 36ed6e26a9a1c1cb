"""What defines a resource: its names, its verbs, the strategy for writes, and the columns that kubectl prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agent.core.model import Object
from agent.core.times import parse_time
from agent.minicluster.status_errors import StatusCause

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


class MalformedError(Exception):
    """A value does not fit the type of its field."""


@dataclass(frozen=True, slots=True)
class MergeKey:
    """How strategic merge treats one list: by `key`, or as a set of plain values when `key` is empty."""

    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a Table."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What a DELETE asks for."""

    grace_period_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


def _unchanged(_: Object) -> None:
    """Keep the object as the client sent it."""


def _status_only(new: Object, old: Object) -> None:
    """Keep everything but status and metadata, as most status subresources do."""
    for part in set(new) | set(old):
        if part not in {"metadata", "status"}:
            _copy(part, new, old)


def keep_status(new: Object, old: Object) -> None:
    """Keep the status; only the status subresource may change it."""
    _copy("status", new, old)


def _copy(part: str, new: Object, old: Object) -> None:
    if part in old:
        new[part] = old[part]
    else:
        new.pop(part, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The rules of a resource for writes, as upstream's RESTCreateStrategy and its siblings; all have defaults."""

    decode: Callable[[Object], None] = _unchanged
    """Checks types (raising MalformedError) and fills defaults, on every write."""
    prepare_create: Callable[[Object], None] = _unchanged
    prepare_update: Callable[[Object, Object], None] = keep_status
    subresources: Mapping[str, Callable[[Object, Object], None]] = field(
        default_factory=lambda: {"status": _status_only}
    )
    validate: Callable[[Object], list[StatusCause]] = lambda _: []
    validate_update: Callable[[Object, Object], list[StatusCause]] = lambda _new, _old: []
    graceful_delete: Callable[[Object, DeleteOptions, datetime], Object | None] = lambda _obj, _options, _now: None
    """The object to keep for now instead of deleting it, or None when it may go at once."""
    any_name: bool = False  # whether names need not be subdomains
    create_on_update: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of one API group version."""

    group: str = ""
    version: str = "v1"
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strategy: Strategy = field(default_factory=Strategy)
    merge_keys: Mapping[tuple[str, ...], MergeKey] = field(default_factory=dict)
    field_labels: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    generic_field_labels: bool = True
    columns: tuple[Column, ...] = ()
    cells: Callable[[Object, datetime], list[Any]] | None = None
    bookmark: Object = field(default_factory=dict)
    """What the object of a bookmark carries besides its metadata."""
    storage_name: str = ""
    to_wire: Callable[[Object], Object] | None = None
    from_wire: Callable[[Object], Object] | None = None
    answer: Callable[[Object], Object] | None = None
    """For reviews: the filled-in object; such a resource is never stored."""

    @property
    def key(self) -> str:
        """`plural.group`, as error messages and the store name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_as(self) -> str:
        """The store's name for the objects; two resources may be views of the same."""
        return self.storage_name or self.key

    @property
    def api_version(self) -> str:
        """`group/version`, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version


NAME = Column(name="Name", format="name", description="Name of the object, unique within its namespace.")
AGE = Column(name="Age", description="Time since the object was created.")
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 31536000


def human_age(text: str | None, now: datetime) -> str:
    """Return the age that kubectl prints."""
    return human_duration(now - parse_time(text)) if text else "<unknown>"


def human_duration(duration: timedelta) -> str:
    """Format a duration as kubectl prints an AGE: at most two units."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    for limit, unit, letter, rest, rest_letter in (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if seconds < limit:
            left = (seconds % unit) // rest if rest else 0
            return f"{seconds // unit}{letter}" + (f"{left}{rest_letter}" if left else "")
    return f"{seconds // _YEAR}y"
