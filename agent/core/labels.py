"""What `--node-labels` and `--register-with-taints` may say."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.core.errors import ConfigError
from agent.core.names import label_value_faults, qualified_name_faults

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
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that the Node is registered with."""

    key: str
    value: str
    effect: str

    def as_object(self) -> dict[str, str]:
        """The taint as the API spells it."""
        return {"key": self.key, **({"value": self.value} if self.value else {}), "effect": self.effect}


def check_labels(labels: Mapping[str, str]) -> None:
    """Raise a ConfigError where a kubelet would refuse to start with these labels."""
    unknown = sorted(key for key in labels if _is_kubernetes(key) and not _is_allowed(key))
    if unknown:
        raise ConfigError(
            f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{' '.join(unknown)}]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix "
            f"({', '.join(_ALLOWED_PREFIXES)}) or be in the specifically allowed set ({', '.join(_ALLOWED_KEYS)})"
        )
    faults = [
        f"'{text}' - {', '.join(found)}"
        for key, value in labels.items()
        for text, found in ((key, qualified_name_faults(key)), (value, label_value_faults(value)))
        if found
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
    if effect not in _EFFECTS:
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
