"""Settings as Go's encoding/json reads and writes them: types, structs, decoding with Go's errors, defaults."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent.core.quantity import Quantity, QuantityError
from agent.core.times import format_nanos, parse_nanos

Json = Any
"""A JSON value; durations and quantities are stored as Go prints them."""

Document = dict[str, Any]
"""The fields of a struct, by their JSON names."""

_NUMERIC = ("int", "v1.Verb")
_JSON_TYPES = {"str": "string", "list": "array", "dict": "object"}


class DecodeError(ValueError):
    """A value of the wrong type; the message is that of Go's decoder."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Where a value is in a document: the Go struct that has it as a field, and the dotted path from the top."""

    struct: str
    dotted: str = ""

    def child(self, name: str) -> "FieldPath":
        """Return the path of a field below this one."""
        return FieldPath(self.struct, f"{self.dotted}.{name}" if self.dotted else name)

    def mismatch(self, value: Json, go_type: str) -> DecodeError:
        """Return the error for a value of another JSON type, or for a number out of range, which it shows."""
        shown = f"number {value}" if _is_number(value) and go_type.startswith(_NUMERIC) else _json_type(value)
        return DecodeError(
            f"json: cannot unmarshal {shown} into Go struct field {self.struct}.{self.dotted} of type {go_type}"
        )


class GoType(NamedTuple):
    """A Go type: its name, its zero value, and how it decodes JSON."""

    name: str
    zero: Json
    decode: Callable[[Json, FieldPath], Json]


class Field(NamedTuple):
    """One field of a struct; where Go has a pointer, zero is a value like any other."""

    type: GoType
    default: Json = None
    pointer: bool = False
    always: bool = False  # encoded even when zero: it has no omitempty


class Struct(NamedTuple):
    """A Go struct with its fields in the order in which Go prints them; one behind a pointer may be absent."""

    name: str
    fields: Mapping[str, "Field | Struct"]
    go_type: str = ""  # the name with its package
    pointer: bool = False


def _json_type(value: Json) -> str:
    """Return the JSON name of a value's type, as in the errors of Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    return "number" if _is_number(value) else _JSON_TYPES.get(type(value).__name__, "null")


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _exact_type(name: str, python: type, zero: Json) -> GoType:
    def decode(value: Json, path: FieldPath) -> Json:
        if type(value) is not python:
            raise path.mismatch(value, name)
        return value

    return GoType(name, zero, decode)


def _integer_type(name: str, low: int, high: int) -> GoType:
    def decode(value: Json, path: FieldPath) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1e3 is a whole number in YAML
        if type(value) is not int or not low <= value <= high:
            raise path.mismatch(value, name)
        return value

    return GoType(name, 0, decode)


def _decode_float(value: Json, path: FieldPath) -> float:
    if not _is_number(value):
        raise path.mismatch(value, "float64")
    return value  # type: ignore[no-any-return]  # an int stays one: Go prints 1 for 1.0


def _decode_duration(value: Json, path: FieldPath) -> str:
    """Return a duration as Go prints it; unlike Go's own, the error names the field."""
    if not isinstance(value, str):
        raise path.mismatch(value, "string")
    try:
        return format_nanos(parse_nanos(value))
    except ValueError as error:
        raise DecodeError(f"{error} in field {path.dotted}") from error


def _decode_flush_frequency(value: Json, path: FieldPath) -> Json:
    """Return a duration, or the number of nanoseconds that older files have; a number stays one."""
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise path.mismatch(value, "time.Duration")
    duration = _decode_duration(value, path)
    return 0 if duration == "0s" else duration


def _decode_quantity(value: Json, path: FieldPath) -> str:
    text = str(value) if _is_number(value) else value
    if not isinstance(text, str):
        raise path.mismatch(value, "string")
    try:
        return str(Quantity.parse(text))
    except QuantityError as error:
        raise DecodeError(f"{error} in field {path.dotted}") from error


def string_type(name: str) -> GoType:
    """Return a string type, which may have a name of its own."""
    return _exact_type(name, str, "")


def list_type(item: GoType) -> GoType:
    """Return the type of a list of items."""
    name = f"[]{item.name}"

    def decode(value: Json, path: FieldPath) -> list[Json]:
        if not isinstance(value, list):
            raise path.mismatch(value, name)
        return [item.zero if entry is None else item.decode(entry, path) for entry in value]

    return GoType(name, [], decode)


def map_type(item: GoType) -> GoType:
    """Return the type of a map from strings to items."""
    name = f"map[string]{item.name}"

    def decode(value: Json, path: FieldPath) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise path.mismatch(value, name)
        return {key: item.zero if entry is None else item.decode(entry, path) for key, entry in value.items()}

    return GoType(name, {}, decode)


def struct_list_type(name: str, fields: Mapping[str, GoType], required: tuple[str, ...] = ()) -> GoType:
    """Return the type of a list of structs; `required` names the fields that Go encodes even when zero."""

    def decode_struct(value: Json, path: FieldPath) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise path.mismatch(value, name)
        inner = FieldPath(name.rpartition(".")[2], path.dotted)
        decoded = {
            key: field.decode(value[key], inner.child(key))
            for key, field in fields.items()
            if value.get(key) is not None
        }
        return {key: decoded.get(key, fields[key].zero) for key in fields if key in required or key in decoded}

    return list_type(GoType(name, {}, decode_struct))


BOOL = _exact_type("bool", bool, False)
STRING = string_type("string")
INT32 = _integer_type("int32", -(2**31), 2**31 - 1)
INT64 = _integer_type("int64", -(2**63), 2**63 - 1)
LEVEL = _integer_type("v1.VerbosityLevel", 0, 2**32 - 1)
FLOAT = GoType("float64", 0.0, _decode_float)
DURATION = GoType("v1.Duration", "0s", _decode_duration)
FLUSH_FREQUENCY = GoType("v1.TimeOrMetaDuration", 0, _decode_flush_frequency)
QUANTITY = GoType("resource.Quantity", "0", _decode_quantity)
STRING_MAP = map_type(STRING)


def decode(struct: Struct, value: Json, unknown: list[str], path: FieldPath | None = None) -> Document:
    """Return the fields that are set, checked; null counts as not set. Appends names that the struct lacks."""
    path = path or FieldPath(struct.name)
    decoded: Document = {}
    for name, entry in value.items():
        field, inner = struct.fields.get(name), path.child(name)
        if field is None:
            unknown.append(inner.dotted)
        elif entry is None:
            continue
        elif isinstance(field, Field):
            decoded[name] = field.type.decode(entry, inner)
        elif isinstance(entry, dict):
            decoded[name] = decode(field, entry, unknown, FieldPath(field.name, inner.dotted))
        else:
            raise inner.mismatch(entry, field.go_type)
    return decoded


def with_defaults(struct: Struct, document: Document) -> Document:
    """Return the document with a default for all that is absent or, where Go has no pointer to distinguish, zero."""
    filled: Document = {}
    for name, field in struct.fields.items():
        value = document.get(name)
        if isinstance(field, Struct):
            if value is not None or not field.pointer:
                filled[name] = with_defaults(field, value or {})
        elif value is None or (value == field.type.zero and not field.pointer):
            filled[name] = copy.copy(field.default if field.default is not None or field.pointer else field.type.zero)
        else:
            filled[name] = value
    return filled


def encode(struct: Struct, document: Document) -> Document:
    """Return the document as Go's encoder writes it, without what `omitempty` omits."""
    encoded: Document = {}
    for name, field in struct.fields.items():
        value = document.get(name)
        if value is None:
            continue
        if isinstance(field, Struct):
            encoded[name] = encode(field, value)
        # A pointer is encoded whatever it points to, but a list is no pointer: an empty one is omitted.
        elif field.always or value != field.type.zero or (field.pointer and not isinstance(value, list)):
            encoded[name] = value
    return encoded


def merge_patch(target: Json, patch: Json) -> Json:
    """Return the target with a JSON merge patch applied (RFC 7386): objects merge, null removes, the rest replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def get_path(document: Document, path: str) -> Json:
    """Return the value at a dotted path, None where there is none."""
    value: Json = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def set_path(document: Document, path: str, value: Json) -> None:
    """Set the value at a dotted path."""
    *parents, last = path.split(".")
    for name in parents:
        document = document.setdefault(name, {})
    document[last] = value


def field_paths(struct: Struct, document: Document, prefix: str = "") -> Iterator[str]:
    """Yield the dotted paths of the fields that a decoded document sets."""
    for name, value in document.items():
        field = struct.fields.get(name)
        if isinstance(field, Struct) and isinstance(value, dict):
            yield from field_paths(field, value, f"{prefix}{name}.")
        elif field is not None:
            yield f"{prefix}{name}"


def leaves(struct: Struct, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield every field of a struct with its dotted path, those of inner structs included."""
    for name, entry in struct.fields.items():
        if isinstance(entry, Struct):
            yield from leaves(entry, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", entry
