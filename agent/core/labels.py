"""Names, labels and taints: their syntax, and what `--node-labels` and `--register-with-taints` accept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.core.errors import ConfigError
from agent.core.model import NodeTaint

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

_ALLOWED_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_ALLOWED_KEYS = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def subdomain_faults(name: str) -> list[str]:
    """Return why `name` is not a DNS-1123 subdomain, which a Node's name must be; empty when it is."""
    faults = [] if len(name) <= 253 else ["must be no more than 253 bytes"]
    return faults if _SUBDOMAIN.fullmatch(name) else [*faults, _SUBDOMAIN_RULE]


def label_value_faults(value: str) -> list[str]:
    """Return why `value` cannot be a label's value; empty when it can."""
    faults = [] if len(value) <= 63 else ["must be no more than 63 bytes"]
    return faults if not value or _LABEL_PART.fullmatch(value) else [*faults, _LABEL_VALUE_RULE]


def qualified_name_faults(key: str) -> list[str]:
    """Return why `key` cannot be a label's, taint's or resource's key; empty when it can."""
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash:
        faults += [f"prefix part {fault}" for fault in (subdomain_faults(prefix) if prefix else ["must be non-empty"])]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    return faults if _LABEL_PART.fullmatch(name) else [*faults, _LABEL_NAME_RULE]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that the Node is registered with."""

    key: str
    value: str
    effect: str

    def as_object(self) -> NodeTaint:
        """Return the taint as the API has it."""
        if self.value:
            return {"key": self.key, "value": self.value, "effect": self.effect}
        return {"key": self.key, "effect": self.effect}


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise a ConfigError where a kubelet would refuse to start with these labels."""
    unknown = sorted(key for key in labels if _is_kubernetes(key) and not _is_allowed(key))
    if unknown:
        raise ConfigError(
            f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{' '.join(unknown)}]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
            f"({', '.join(_ALLOWED_PREFIXES)}) or be in the specifically allowed set ({', '.join(_ALLOWED_KEYS)})"
        )
    check_label_syntax(labels)


def check_label_syntax(labels: Mapping[str, str]) -> None:
    """Raise a ConfigError for labels that an API server refuses."""
    faults = [
        f"'{text}' - {', '.join(reasons)}"
        for key, value in labels.items()
        for text, reasons in ((key, qualified_name_faults(key)), (value, label_value_faults(value)))
        if reasons
    ]
    if faults:
        raise ConfigError(f"invalid node labels: {'; '.join(faults)}")


def parse_taints(text: str) -> tuple[Taint, ...]:
    """Read `key=value:effect,key:effect` as kubelet's `--register-with-taints` does."""
    taints = tuple(_parse_taint(item) for item in text.split(",") if item.strip())
    for index, taint in enumerate(taints):
        if any((taint.key, taint.effect) == (other.key, other.effect) for other in taints[:index]):
            raise ConfigError(f"duplicated taints with the same key and effect: {taint.as_object()}")
    return taints


def _parse_taint(item: str) -> Taint:
    head, colon, effect = item.strip().partition(":")
    key, _, value = head.partition("=")
    faults = qualified_name_faults(key) + label_value_faults(value)
    if not colon or faults or "=" in value:
        raise ConfigError(f"invalid taint spec: {item}{', ' + '; '.join(faults) if faults else ''}")
    if effect not in EFFECTS:
        raise ConfigError(f"invalid taint effect: {effect}, unsupported taint effect")
    return Taint(key, value, effect)


def _namespace(key: str) -> str:
    return key.partition("/")[0] if "/" in key else ""


def _is_kubernetes(key: str) -> bool:
    return any(_within(_namespace(key), domain) for domain in ("kubernetes.io", "k8s.io"))


def _is_allowed(key: str) -> bool:
    return key in _ALLOWED_KEYS or any(_within(_namespace(key), prefix) for prefix in _ALLOWED_PREFIXES)


def _within(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith("." + domain)
