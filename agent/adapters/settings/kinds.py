"""The Go types of settings: how JSON becomes a value, which value is zero, and what Go says of a wrong one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agent.core.quantity import Quantity, QuantityError
from agent.core.times import format_nanos, parse_nanos

Json = Any
"""What JSON can say; durations and quantities are kept as Go prints them."""


class DecodeError(ValueError):
    """A value of the wrong type; the message is the one Go's decoder gives."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document a value stands: the Go struct that holds it, and the path from the top."""

    struct: str
    path: str = ""

    def child(self, name: str, struct: str = "") -> "Place":
        """The place of a field of this one."""
        return Place(struct or self.struct, f"{self.path}.{name}" if self.path else name)

    def mismatch(self, value: Json, go_type: str) -> DecodeError:
        """The error for a value whose JSON type is another one; a number out of range is told too."""
        found = f"number {value}" if _is_number(value) and go_type.startswith(_NUMERIC) else json_type(value)
        return DecodeError(
            f"json: cannot unmarshal {found} into Go struct field {self.struct}.{self.path} of type {go_type}"
        )


_NUMERIC = ("int", "v1.Verb")
_JSON_TYPES = {"str": "string", "list": "array", "dict": "object"}


class Kind(NamedTuple):
    """A type: its Go name, its zero value, and how JSON is read."""

    go_type: str
    zero: Json
    decode: Callable[[Json, Place], Json]


class Field(NamedTuple):
    """One field of a struct: its kind and default; where Go has a pointer, zero is a value like any other."""

    kind: Kind
    default: Json = None
    pointer: bool = False
    always: bool = False  # printed even when zero


class Struct(NamedTuple):
    """A Go struct by name, with its fields in the order Go prints them; one behind a pointer may be absent."""

    name: str
    fields: Mapping[str, "Field | Struct"]
    go_type: str = ""  # the name with its package
    pointer: bool = False


def json_type(value: Json) -> str:
    """The JSON name of a value's type, as Go's decoder says it."""
    if isinstance(value, bool):
        return "bool"
    if _is_number(value):
        return "number"
    return _JSON_TYPES.get(type(value).__name__, "null")


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _simple(go_type: str, python: type, zero: Json) -> Kind:
    def decode(value: Json, place: Place) -> Json:
        if type(value) is not python:
            raise place.mismatch(value, go_type)
        return value

    return Kind(go_type, zero, decode)


def _integer(go_type: str, low: int, high: int) -> Kind:
    def decode(value: Json, place: Place) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 1e3 is a whole number in YAML
        if type(value) is not int or not low <= value <= high:
            raise place.mismatch(value, go_type)
        return value

    return Kind(go_type, 0, decode)


def _number(value: Json, place: Place) -> float:
    if not _is_number(value):
        raise place.mismatch(value, "float64")
    return value  # type: ignore[no-any-return]  # an int stays one: Go prints 1 for 1.0


def _duration(value: Json, place: Place) -> str:
    if not isinstance(value, str):
        raise place.mismatch(value, "string")
    return go_duration(value, place)


def go_duration(text: str, place: Place) -> str:
    """A duration as Go prints it; unlike Go's own, the error names the field."""
    try:
        return format_nanos(parse_nanos(text))
    except ValueError as error:
        raise DecodeError(f"{error} in field {place.path}") from error


def _quantity(value: Json, place: Place) -> str:
    text = str(value) if _is_number(value) else value
    if not isinstance(text, str):
        raise place.mismatch(value, "string")
    try:
        return str(Quantity.parse(text))
    except QuantityError as error:
        raise DecodeError(f"{error} in field {place.path}") from error


def _flush_frequency(value: Json, place: Place) -> Json:
    """A duration, or the number of nanoseconds that older files have; a number stays one."""
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise place.mismatch(value, "time.Duration")
    text = go_duration(value, place)
    return 0 if text == "0s" else text


def text(go_type: str) -> Kind:
    """A string, whose type may have a name of its own."""
    return _simple(go_type, str, "")


def listing(item: Kind) -> Kind:
    """A list of one kind."""
    go_type = f"[]{item.go_type}"

    def decode(value: Json, place: Place) -> list[Json]:
        if not isinstance(value, list):
            raise place.mismatch(value, go_type)
        return [item.zero if entry is None else item.decode(entry, place) for entry in value]

    return Kind(go_type, [], decode)


def mapping(item: Kind) -> Kind:
    """A map from strings to one kind."""
    go_type = f"map[string]{item.go_type}"

    def decode(value: Json, place: Place) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise place.mismatch(value, go_type)
        return {key: item.zero if entry is None else item.decode(entry, place) for key, entry in value.items()}

    return Kind(go_type, {}, decode)


def structs(name: str, fields: Mapping[str, Kind], required: tuple[str, ...] = ()) -> Kind:
    """A list of structs; fields that Go prints even when zero are required."""

    def decode_one(value: Json, place: Place) -> dict[str, Json]:
        if not isinstance(value, dict):
            raise place.mismatch(value, name)
        inner = Place(name.rpartition(".")[2], place.path)
        given = {
            key: kind.decode(value[key], inner.child(key)) for key, kind in fields.items() if value.get(key) is not None
        }
        return {key: given.get(key, fields[key].zero) for key in fields if key in required or key in given}

    return listing(Kind(name, {}, decode_one))


BOOL = _simple("bool", bool, False)
STRING = text("string")
INT32 = _integer("int32", -(2**31), 2**31 - 1)
INT64 = _integer("int64", -(2**63), 2**63 - 1)
LEVEL = _integer("v1.VerbosityLevel", 0, 2**32 - 1)
FLOAT = Kind("float64", 0.0, _number)
DURATION = Kind("v1.Duration", "0s", _duration)
FLUSH = Kind("v1.TimeOrMetaDuration", 0, _flush_frequency)
QUANTITY = Kind("resource.Quantity", "0", _quantity)
STRINGS = listing(STRING)
STRING_MAP = mapping(STRING)
