"""Rules that hold for many resources: names, labels, quantities and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent.minicluster.errors import Fault
from agent.minicluster.resource import MalformedError

if TYPE_CHECKING:
    from agent.minicluster.resource import Object

_LABEL_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL_PART}(\.{_LABEL_PART})*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_SUFFIX = re.compile(r"|[numkMGTPE]|[KMGTPE]i|[eE][-+]?\d+")
_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{6})(Z|[+-]\d\d:\d\d)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

# Kubernetes' own words: clients and people search for them.
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


def metadata_faults(obj: Object) -> list[Fault]:
    """What is wrong with an object's name, labels and annotations."""
    metadata = obj["metadata"]
    faults = subdomain_faults("metadata.name", metadata["name"])
    for key, value in (metadata.get("labels") or {}).items():
        faults += qualified_name_faults("metadata.labels", key)
        faults += label_value_faults("metadata.labels", value)
    for key in metadata.get("annotations") or {}:
        faults += qualified_name_faults("metadata.annotations", key.lower())
    return faults


def subdomain_faults(field: str, name: str) -> list[Fault]:
    """A DNS-1123 subdomain of at most 253 characters."""
    if len(name) > 253:
        return [Fault.invalid(field, name, "must be no more than 253 characters")]
    return [] if _SUBDOMAIN.fullmatch(name) else [Fault.invalid(field, name, SUBDOMAIN_RULE)]


def qualified_name_faults(field: str, name: str) -> list[Fault]:
    """A label key: an optional DNS prefix, a slash, a name."""
    prefix, slash, part = name.rpartition("/")
    faults = []
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        faults.append(Fault.invalid(field, name, f"prefix part {SUBDOMAIN_RULE}"))
    if not part:
        faults.append(Fault.invalid(field, name, "name part must be non-empty"))
    if len(part) > 63:
        faults.append(Fault.invalid(field, name, "name part must be no more than 63 characters"))
    if not _NAME_PART.fullmatch(part):
        faults.append(Fault.invalid(field, name, NAME_PART_RULE))
    return faults


def label_value_faults(field: str, value: str) -> list[Fault]:
    """A label value or a taint value."""
    if len(value) > 63:
        return [Fault.invalid(field, value, "must be no more than 63 characters")]
    return [] if _LABEL_VALUE.fullmatch(value) else [Fault.invalid(field, value, LABEL_VALUE_RULE)]


def check_quantities(values: Any) -> None:
    """Every value of a resource list parses as a quantity."""
    for value in (values or {}).values():
        match = _QUANTITY.fullmatch(str(value))
        if match is None or not _NUMBER.fullmatch(match[1]) or not _SUFFIX.fullmatch(match[2]):
            rule = f"^{_QUANTITY.pattern}$"
            raise MalformedError(f"quantities must match the regular expression '{rule}'")


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
