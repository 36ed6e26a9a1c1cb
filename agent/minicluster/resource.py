"""What the API server has to know about a resource: its names, its verbs and its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from agent.minicluster.errors import Fault

Object: TypeAlias = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


class MalformedError(Exception):
    """A value that does not fit its field's type, found while decoding."""


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


def _as_given(_: Object) -> None:
    """Change nothing."""


def _no_faults(_: Object) -> list[Fault]:
    return []


def _no_update_faults(_new: Object, _old: Object) -> list[Fault]:
    return []


def _status_only(new: Object, old: Object) -> None:
    """Keep everything but status and metadata, as most status subresources do."""
    for part in set(new) | set(old):
        if part not in {"metadata", "status"}:
            _copy(part, new, old)


def keep_status(new: Object, old: Object) -> None:
    """Keep the status, whatever the writer of the main resource sent."""
    _copy("status", new, old)


def _copy(part: str, new: Object, old: Object) -> None:
    if part in old:
        new[part] = old[part]
    else:
        new.pop(part, None)


def _gone_at_once(_obj: Object, _options: DeleteOptions, _now: datetime) -> Object | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a resource does with an object on its way in; every rule has a harmless default."""

    decode: Callable[[Object], None] = _as_given
    """Checks types (raising MalformedError) and fills defaults, on every write."""
    prepare_create: Callable[[Object], None] = _as_given
    prepare_update: Callable[[Object, Object], None] = keep_status
    subresources: Mapping[str, Callable[[Object, Object], None]] = field(
        default_factory=lambda: {"status": _status_only}
    )
    validate: Callable[[Object], list[Fault]] = _no_faults
    validate_update: Callable[[Object, Object], list[Fault]] = _no_update_faults
    soften_delete: Callable[[Object, DeleteOptions, datetime], Object | None] = _gone_at_once
    """The object to keep for now instead of deleting it, or None when it may go at once."""
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
    rules: Rules = field(default_factory=Rules)
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
