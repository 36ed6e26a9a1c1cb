"""Feature gates: which are on, given what was asked for; refused in the words of Kubernetes."""

from collections.abc import Iterator, Mapping

from agent.core.errors import ConfigError
from agent.core.kubelet_data.gates import DEPENDENCIES, GATES

_GROUPS = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}


class Gates:
    """The feature gates of one node."""

    def __init__(self, asked: Mapping[str, bool]) -> None:
        self._asked = dict(asked)

    def enabled(self, name: str) -> bool:
        """Whether a feature is on: asked for by name, by AllAlpha or AllBeta, or by default."""
        if name in self._asked:
            return self._asked[name]
        gate = GATES[name]
        group = next((group for group, stage in _GROUPS.items() if stage == gate.stage), "")
        return gate.default if gate.locked else self._asked.get(group, gate.default)

    def check(self) -> None:
        """Raise a ConfigError where Kubernetes would not set these gates."""
        if faults := list(self._faults()) or list(self._missing_dependencies()):
            raise ConfigError(aggregate(faults))

    def warnings(self) -> Iterator[str]:
        """The gates that were set although they will go."""
        for name in sorted(self._asked):
            if name not in _GROUPS and GATES[name].stage in {"", "DEPRECATED"}:
                yield name

    def _faults(self) -> Iterator[str]:
        for name, value in sorted(self._asked.items()):
            gate = GATES.get(name)
            if gate is None:
                yield f"unrecognized feature gate: {name}"
                return
            if gate.locked and gate.default != value:
                yield (f"cannot set feature gate {name} to {_text(value)}, feature is locked to {_text(gate.default)}")

    def _missing_dependencies(self) -> Iterator[str]:
        for name, needed in DEPENDENCIES.items():
            disabled = [other for other in needed if not self.enabled(other)]
            if disabled and self.enabled(name):
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(disabled)}]"


def aggregate(faults: list[str]) -> str:
    """Several errors as Kubernetes prints them: one as it is, more in brackets, the same one once."""
    unique = list(dict.fromkeys(faults))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _text(value: bool) -> str:
    return "true" if value else "false"
