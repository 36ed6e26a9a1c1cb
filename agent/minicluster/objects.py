"""Objects between the wire and the store: decoded, checked, and given the metadata that only the server may set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent.core.quantity import QuantityError, parse_quantity
from agent.minicluster.status_errors import StatusCause, bad_request
from agent.minicluster.strategy import MalformedError

if TYPE_CHECKING:
    from agent.core.model import Object
    from agent.minicluster.strategy import Resource

_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
_SYSTEM_FIELDS = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_LABEL_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL_PART}(\.{_LABEL_PART})*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{6})(Z|[+-]\d\d:\d\d)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

# The texts of Kubernetes: clients and people search for them.
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    rf"'{_LABEL_PART}(\.{_LABEL_PART})*')"
)
NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_NAME_PART.pattern}')"
)
LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE.pattern}')"
)


def decode_object(resource: Resource, body: Any) -> Object:
    """The object a client sent, in the form the store keeps; raises MalformedError when types do not fit."""
    if not isinstance(body, dict):
        raise MalformedError(f"cannot be decoded into a {resource.kind}")
    wire = resource.from_wire(body) if resource.from_wire else body
    obj: Object = {"kind": resource.kind, "apiVersion": wire.get("apiVersion") or resource.api_version}
    obj["metadata"] = _decode_metadata(wire.get("metadata") or {})
    obj |= {part: _without_nulls(value) for part, value in wire.items() if part not in obj and value is not None}
    for part in ("spec", "status"):
        if not isinstance(obj.get(part, {}), dict):
            raise MalformedError(f"json: cannot unmarshal into field {resource.kind}.{part}")
    try:
        resource.strategy.decode(obj)
    except (AttributeError, KeyError, TypeError) as error:
        raise MalformedError(f"json: a field has another type than {resource.kind} gives it ({error})") from error
    return obj


def check_type(resource: Resource, body: Any) -> None:
    """The body claims to be what the path says, or claims nothing."""
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    kind, version = body.get("kind") or resource.kind, body.get("apiVersion") or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        short = version.rpartition("/")[2]
        raise bad_request(f'{kind} in version "{short}" cannot be handled as a {resource.kind}: unknown conversion')


def _decode_metadata(metadata: Any) -> Object:
    if not isinstance(metadata, dict):
        raise MalformedError("json: cannot unmarshal into field ObjectMeta.metadata")
    for field in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(metadata.get(field) or "", str):
            raise MalformedError(
                f"json: cannot unmarshal number into Go struct field ObjectMeta.metadata.{field} of type string"
            )
    for field in ("labels", "annotations"):
        if not all(isinstance(value, str) for value in (metadata.get(field) or {}).values()):
            raise MalformedError(
                f"json: cannot unmarshal number into Go struct field ObjectMeta.metadata.{field} of type string"
            )
    # What is empty is not written; managedFields are not kept here at all.
    return {field: _without_nulls(metadata[field]) for field in _METADATA_ORDER if metadata.get(field)}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def identified(obj: Object, *, uid: str, now: str) -> Object:
    """A new object with what only the server may set."""
    kept = {key: value for key, value in obj["metadata"].items() if key not in _SYSTEM_FIELDS}
    return obj | {"metadata": ordered(kept | {"uid": uid, "resourceVersion": "", "creationTimestamp": now})}


def inherit(new: Object, old: Object) -> Object:
    """A new state of an object with what an update may not change."""
    kept = {field: old["metadata"][field] for field in _SYSTEM_FIELDS if field in old["metadata"]}
    free = {key: value for key, value in new["metadata"].items() if key not in _SYSTEM_FIELDS}
    version = {"resourceVersion": old["metadata"]["resourceVersion"]}
    return new | {"apiVersion": old["apiVersion"], "metadata": ordered(free | kept | version)}


def ordered(metadata: Object) -> Object:
    """The metadata in the order the API writes it."""
    return {field: metadata[field] for field in _METADATA_ORDER if field in metadata}


def validate_metadata(obj: Object, *, any_name: bool) -> list[StatusCause]:
    """What is wrong with an object's name, labels and annotations."""
    metadata = obj["metadata"]
    causes = [] if any_name else validate_subdomain("metadata.name", metadata["name"])
    for key, value in (metadata.get("labels") or {}).items():
        causes += validate_qualified_name("metadata.labels", key)
        causes += validate_label_value("metadata.labels", value)
    for key in metadata.get("annotations") or {}:
        causes += validate_qualified_name("metadata.annotations", key.lower())
    return causes


def validate_subdomain(field: str, name: str) -> list[StatusCause]:
    """A DNS-1123 subdomain of at most 253 characters."""
    if len(name) > 253:
        return [StatusCause.invalid(field, name, "must be no more than 253 characters")]
    return [] if _SUBDOMAIN.fullmatch(name) else [StatusCause.invalid(field, name, SUBDOMAIN_RULE)]


def validate_qualified_name(field: str, name: str) -> list[StatusCause]:
    """A label key: an optional DNS prefix, a slash, a name."""
    prefix, slash, part = name.rpartition("/")
    causes = []
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        causes.append(StatusCause.invalid(field, name, f"prefix part {SUBDOMAIN_RULE}"))
    if not part:
        causes.append(StatusCause.invalid(field, name, "name part must be non-empty"))
    if len(part) > 63:
        causes.append(StatusCause.invalid(field, name, "name part must be no more than 63 characters"))
    if not _NAME_PART.fullmatch(part):
        causes.append(StatusCause.invalid(field, name, NAME_PART_RULE))
    return causes


def validate_label_value(field: str, value: str) -> list[StatusCause]:
    """A label value or a taint value."""
    if len(value) > 63:
        return [StatusCause.invalid(field, value, "must be no more than 63 characters")]
    return [] if _LABEL_VALUE.fullmatch(value) else [StatusCause.invalid(field, value, LABEL_VALUE_RULE)]


def check_quantities(values: Any) -> None:
    """Every value of a resource list parses as a quantity; it is written in its canonical form from now on."""
    for name, value in (values or {}).items():
        try:
            values[name] = str(parse_quantity(str(value)))
        except QuantityError as error:
            raise MalformedError(str(error)) from error


def check_micro_time(value: Any) -> None:
    """A MicroTime has exactly six decimals."""
    if value is None or (isinstance(value, str) and _MICRO_TIME.fullmatch(value)):
        return
    if not isinstance(value, str):
        raise MalformedError("json: cannot unmarshal number into Go value of type string")
    rest, wanted = _unread(value)
    raise MalformedError(f'parsing time "{value}" as "{_MICRO_LAYOUT}": cannot parse "{rest}" as "{wanted}"')


def _unread(value: str) -> tuple[str, str]:
    """Where reading a MicroTime stops, and what the layout wants there."""
    head = re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value)
    if head is None:
        return value, "2006"
    rest = value[head.end() :]
    fraction = re.match(r"\.\d{6}", rest)
    return (rest[fraction.end() :], "Z07:00") if fraction else (rest, ".000000")


def check_time(value: Any) -> None:
    """A Time is RFC 3339."""
    if value is None or (isinstance(value, str) and _TIME.fullmatch(value)):
        return
    layout = "2006-01-02T15:04:05Z07:00"
    raise MalformedError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')


def without_empty(obj: Object, *fields: str) -> None:
    """Drop empty fields, which the API does not write."""
    for field in fields:
        if field in obj and not obj[field]:
            del obj[field]
