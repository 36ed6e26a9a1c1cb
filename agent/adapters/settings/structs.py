"""Documents through a schema: decode what is given, fill in defaults, print as Go prints."""

import copy
from collections.abc import Iterator
from typing import Any

from agent.adapters.settings.kinds import Field, Json, Place, Struct

Document = dict[str, Any]


def decode(struct: Struct, value: Json, unknown: list[str], place: Place | None = None) -> Document:
    """The given fields, checked; null counts as not given, and names that the struct lacks are collected."""
    place = place or Place(struct.name)
    decoded: Document = {}
    for name, entry in value.items():
        field, inner = struct.fields.get(name), place.child(name)
        if field is None:
            unknown.append(inner.path)
        elif entry is not None:
            decoded[name] = _decode_entry(field, entry, unknown, inner)
    return decoded


def _decode_entry(field: Field | Struct, entry: Json, unknown: list[str], place: Place) -> Json:
    if isinstance(field, Field):
        return field.kind.decode(entry, place)
    if not isinstance(entry, dict):
        raise place.mismatch(entry, field.go_type)
    return decode(field, entry, unknown, Place(field.name, place.path))


def fill(struct: Struct, document: Document) -> Document:
    """The document with a default for all that is absent or, without a pointer to tell, zero."""
    filled: Document = {}
    for name, field in struct.fields.items():
        value = document.get(name)
        if isinstance(field, Struct):
            if value is not None or not field.pointer:
                filled[name] = fill(field, value or {})
        elif value is None or (value == field.kind.zero and not field.pointer):
            filled[name] = copy.copy(field.default if field.default is not None or field.pointer else field.kind.zero)
        else:
            filled[name] = value
    return filled


def printed(struct: Struct, document: Document) -> Document:
    """The document as Go's encoder writes it: what `omitempty` omits is left out."""
    shown: Document = {}
    for name, field in struct.fields.items():
        value = document.get(name)
        if isinstance(field, Struct):
            if value is not None:
                shown[name] = printed(field, value)
        elif value is not None and (field.always or _is_told(field, value)):
            shown[name] = value
    return shown


def _is_told(field: Field, value: Json) -> bool:
    # A pointer is told whatever it points to, but a list is no pointer: an empty one is omitted.
    return value != field.kind.zero or (field.pointer and not isinstance(value, list))


def merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386: objects merge, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def read(document: Document, path: str) -> Json:
    """The value at a dotted path, None where there is none."""
    found: Json = document
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def write(document: Document, path: str, value: Json) -> None:
    """Put a value at a dotted path."""
    *parents, last = path.split(".")
    for name in parents:
        document = document.setdefault(name, {})
    document[last] = value


def given_paths(struct: Struct, document: Document, prefix: str = "") -> Iterator[str]:
    """The dotted paths of the fields that a decoded document sets."""
    for name, value in document.items():
        field = struct.fields.get(name)
        if isinstance(field, Struct) and isinstance(value, dict):
            yield from given_paths(field, value, f"{prefix}{name}.")
        elif field is not None:
            yield f"{prefix}{name}"
