"""The documents of a fleet file, decoded strictly: an error names the path of the field that is wrong."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agent.adapters.go_yaml import load_documents
from agent.adapters.settings.pflag import did_you_mean
from agent.adapters.settings.schema import FAKE_API
from agent.core.errors import ConfigError
from agent.core.quantity import Quantity, parse_amounts

FLEET_KIND = "Fleet"

_Kind = TypeVar("_Kind")
_PLACE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_MISMATCH = re.compile(r"Expected `(.*)`, got `(.*)`")
_WORDS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "object": "mapping", "array": "list"}


class Document(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A document, or a part of one, that has no other fields than these."""


class TaintDocument(Document):
    """A taint of the nodes of a group."""

    key: str
    effect: str
    value: str = ""


class StartupDocument(Document):
    """How the nodes of a group come up."""

    delay: str = "0s"
    jitter: str = "0s"
    never_register: str | int | float = "0%"
    never_ready: str | int | float = "0%"


class GroupDocument(Document):
    """Nodes that are alike. The values of maps are checked by whoever reads them, with their keys."""

    name: str
    count: int | None = None
    name_template: str | None = None
    instance_type: str = ""
    like: str = ""
    keep_provider_ids: bool = msgspec.field(name="keepProviderIDs", default=False)
    config: str = ""
    capacity: dict[str, object] = {}
    extended_resources: dict[str, object] = {}
    zones: dict[str, object] = {}
    labels: dict[str, object] = {}
    taints: tuple[TaintDocument, ...] = ()
    startup: StartupDocument = msgspec.field(default_factory=StartupDocument)


class MetadataDocument(Document):
    """The metadata of a fleet."""

    name: str = ""


class FleetDocument(Document):
    """A fleet; its groups are decoded one by one, so that each has its own error."""

    api_version: str
    kind: str
    groups: list[object]
    metadata: MetadataDocument = msgspec.field(default_factory=MetadataDocument)
    seed: int = 0
    catalogue: str = ""


_PARTS: Mapping[str, type[Document]] = {
    "startup": StartupDocument,
    "taints": TaintDocument,
    "metadata": MetadataDocument,
}


def fleet_document(text: str) -> FleetDocument:
    """Return the Fleet of a file. Raises ConfigError with the path of what is wrong."""
    documents, duplicates = load_documents(text)
    if duplicates:
        raise ConfigError(duplicates[0])
    if len(documents) != 1:
        raise ConfigError(f"expected one document of kind {FLEET_KIND}, got {len(documents)}")
    document = documents[0]
    if not isinstance(document, dict):
        raise ConfigError("the document is no mapping")
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (FAKE_API, FLEET_KIND):
        raise ConfigError(
            f"expected apiVersion {FAKE_API} and kind {FLEET_KIND}, got apiVersion {found[0]} and kind {found[1]}"
        )
    return decoded(FleetDocument, document, "")


def decoded(kind: type[_Kind], value: object, place: str) -> _Kind:
    """Return a document as its type; null counts as absent. Raises ConfigError that begins with the path."""
    try:
        return msgspec.convert(_without_nulls(value), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(_explained(kind, str(error), place)) from error


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    return [_without_nulls(entry) for entry in value] if isinstance(value, list) else value


def _explained(kind: type[Any], message: str, place: str) -> str:
    """Return an error of msgspec in the words of a file: `groups[1].startup.dely: unknown field`."""
    match = _PLACE.fullmatch(message)
    problem, path = (match[1], match[2] or "") if match else (message, "")
    parts = [place, path]
    if unknown := _UNKNOWN.fullmatch(problem):
        part = _PARTS.get(path.partition("[")[0], kind)
        names = [field.encode_name for field in msgspec.structs.fields(part)]
        parts.append(unknown[1])
        problem = f"unknown field{did_you_mean(unknown[1], names)}"
    elif missing := _MISSING.fullmatch(problem):
        parts.append(missing[1])
        problem = "missing"
    elif mismatch := _MISMATCH.fullmatch(problem):
        expected, actual = (_in_words(text) for text in mismatch.groups())
        problem = f"expected {expected}, got {actual}"
    return ": ".join(filter(None, (".".join(filter(None, parts)), problem)))


def _in_words(types: str) -> str:
    return " or ".join(_WORDS.get(word, word) for word in types.split(" | ") if word != "null")


def texts(values: Mapping[str, Any], place: str) -> dict[str, str]:
    """Return a map of strings. Raises ConfigError for a value that YAML made something else of."""
    for key, value in values.items():
        if not isinstance(value, str):
            raise ConfigError(f"{place}.{key}: {value} is no string; write it in quotes")
    return dict(values)


def amounts(values: Mapping[str, Any], place: str) -> dict[str, Quantity]:
    """Return a map of quantities, which may be written as numbers."""
    for key, value in values.items():
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ConfigError(f"{place}.{key}: expected a quantity such as 8 or 16Gi")
    try:
        return parse_amounts({key: str(value) for key, value in values.items()})
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from error
