"""Instance types, in the form of the instance_types.json of Karpenter's KWOK provider."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

import msgspec

from agent.adapters.settings.pflag import did_you_mean
from agent.core.errors import ConfigError
from agent.core.quantity import Quantity, parse_amounts

SHIPPED = "the catalogue of fake-kubelet"


@dataclass(frozen=True, slots=True)
class InstanceType:
    """What a cloud provider calls a size of machine."""

    name: str
    architecture: str
    operating_system: str
    resources: Mapping[str, Quantity]


class _Entry(msgspec.Struct, rename="camel"):
    """One instance type as the file has it; its offerings are for autoscalers."""

    name: str
    resources: dict[str, str | int]
    architecture: str = "amd64"
    operating_systems: list[str] | dict[str, object] = []  # a set: Go wrote it as a map, and today as a list


class Catalogue:
    """The instance types of one file."""

    def __init__(self, text: str, source: str) -> None:
        """Read the JSON. Raises ConfigError that names the entry which is wrong."""
        try:
            entries = msgspec.json.decode(text, type=list[_Entry])
            self._types = {entry.name: _instance_type(entry) for entry in entries}
        except (ValueError, msgspec.MsgspecError) as error:
            raise ConfigError(f"{source}: {error}") from error
        self._source = source

    def get(self, name: str) -> InstanceType:
        """Return an instance type. Raises ConfigError with the name that may have been meant."""
        if name not in self._types:
            raise ConfigError(f'"{name}" is not in {self._source}{did_you_mean(name, self._types)}')
        return self._types[name]


def shipped_catalogue() -> Catalogue:
    """Return the catalogue that fake-kubelet brings along."""
    return Catalogue(files(__package__).joinpath("instance_types.json").read_text(), SHIPPED)


def _instance_type(entry: _Entry) -> InstanceType:
    try:
        resources = parse_amounts({name: str(amount) for name, amount in entry.resources.items()})
    except ValueError as error:
        raise ValueError(f"{entry.name}: resources.{error}") from error
    systems = list(entry.operating_systems)
    system = "linux" if "linux" in systems or not systems else systems[0]
    return InstanceType(entry.name, entry.architecture, system, resources)
