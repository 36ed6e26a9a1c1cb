"""Feature gates: which features are on, and the errors of Kubernetes for gates that cannot be set."""

from collections.abc import Iterator, Mapping

from agent.core.errors import ConfigError
from agent.core.kubelet_data.gates import DEPENDENCIES, GATES

_GROUPS = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


class FeatureGates:
    """The feature gates of one node."""

    def __init__(self, values: Mapping[str, bool]) -> None:
        self._values = dict(values)

    def enabled(self, name: str) -> bool:
        """Return whether a feature is on: set by name, by AllAlpha or AllBeta, or by default."""
        if name in self._values:
            return self._values[name]
        gate = GATES[name]
        group = next((group for group, stage in _GROUPS.items() if stage == gate.stage), "")
        return gate.default if gate.locked else self._values.get(group, gate.default)

    def check(self) -> None:
        """Raise ConfigError if Kubernetes would not set these gates."""
        if faults := list(self._faults()) or list(self._missing_dependencies()):
            raise ConfigError(aggregate(faults))

    def warnings(self) -> Iterator[str]:
        """Yield the gates that are set although Kubernetes will remove them."""
        for name in sorted(self._values):
            if name not in _GROUPS and GATES[name].stage in {"", "DEPRECATED"}:
                yield name

    def _faults(self) -> Iterator[str]:
        for name, value in sorted(self._values.items()):
            gate = GATES.get(name)
            if gate is None:
                yield f"unrecognized feature gate: {name}"
                return
            if gate.locked and gate.default != value:
                wanted, default = str(value).lower(), str(gate.default).lower()
                yield f"cannot set feature gate {name} to {wanted}, feature is locked to {default}"

    def _missing_dependencies(self) -> Iterator[str]:
        for name, needed in DEPENDENCIES.items():
            disabled = [other for other in needed if not self.enabled(other)]
            if disabled and self.enabled(name):
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"


def aggregate(faults: list[str]) -> str:
    """Join errors as Kubernetes prints them: one as it is, several in brackets, equal ones once."""
    unique = list(dict.fromkeys(faults))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
