"""The syntax of Kubernetes names and label values."""

import re

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_LABEL_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def subdomain_faults(name: str) -> list[str]:
    """Why `name` is not a DNS-1123 subdomain, which a Node's name must be; empty when it is."""
    faults = [] if len(name) <= 253 else ["must be no more than 253 bytes"]
    return faults if _SUBDOMAIN.fullmatch(name) else [*faults, _SUBDOMAIN_RULE]


def label_value_faults(value: str) -> list[str]:
    """Why `value` cannot be a label's value; empty when it can."""
    faults = [] if len(value) <= 63 else ["must be no more than 63 bytes"]
    return faults if not value or _LABEL_PART.fullmatch(value) else [*faults, _LABEL_VALUE_RULE]


def qualified_name_faults(key: str) -> list[str]:
    """Why `key` cannot be a label's, taint's or resource's key; empty when it can."""
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash:
        faults += [f"prefix part {fault}" for fault in (subdomain_faults(prefix) if prefix else ["must be non-empty"])]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    return faults if _LABEL_PART.fullmatch(name) else [*faults, _LABEL_NAME_RULE]
