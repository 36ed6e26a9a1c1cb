"""`fleet.yaml`, or the flags of `fleet`, with the kubelet's flags → Fleet."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agent.adapters.fleet.documents import FleetDocument, GroupDocument, decoded, fleet_document
from agent.adapters.fleet.group import STDIN, GroupBuilder, Place, check_name, read_text
from agent.adapters.settings.table import FLAGS
from agent.core.adoption import AdoptionSelector
from agent.core.errors import ConfigError
from agent.core.fleet import Fleet, Group, GroupError

DEFAULT_NAME = "fleet"
GROUP_OF_FLAGS = "node"
"""The group of a fleet that is described by flags, for `fleet scale node=500`."""

_FLAGS = {
    "config": "--config",
    "count": "--count",
    "nameTemplate": "--name-template",
    "like": "--like",
    "keepProviderIDs": "--keep-provider-ids",
    "labels": "--node-labels",
    "capacity": "--capacity",
}
_OPTIONS = ("filename", "name", "seed", "catalogue", "count", "name-template", "like", "keep-provider-ids", "adopt")
_OF_ONE_NODE = ("hostname-override", "provider-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """The flags that describe a fleet; without a file, they describe one of a single group."""

    filename: str = ""
    name: str = ""
    seed: int | None = None
    catalogue: str = ""
    count: int | None = None
    name_template: str | None = None
    like: str = ""
    keep_provider_ids: bool = False
    adopt: str = ""

    def __post_init__(self) -> None:
        """Raise ConfigError for flags that do not go together."""
        of_group = {
            "--count": self.count is not None,
            "--name-template": self.name_template is not None,
            "--like": bool(self.like),
            "--keep-provider-ids": self.keep_provider_ids,
        }
        for flag, is_set in of_group.items():
            if is_set and self.filename:
                raise ConfigError(f"-f and {flag} do not go together: the file describes its groups")
            if is_set and self.adopt and not self.describes_group:
                raise ConfigError(f"--adopt and {flag} need --count or --like, too: adopted Nodes are as they are")
        if self.catalogue and not self.filename:
            raise ConfigError("--catalogue goes with -f: only groups in a file name their instance type")
        if self.adopt:
            AdoptionSelector.parse("--adopt", self.adopt)
        elif not (self.filename or self.describes_group):
            raise ConfigError("a fleet needs --count N, --like FILE, -f FILE or --adopt LABEL=VALUE")

    @property
    def describes_group(self) -> bool:
        """Whether the flags describe a group of nodes."""
        return self.count is not None or bool(self.like)


class InvalidFleet(ConfigError):
    """A fleet that cannot be; `errors` has a line for each group that is wrong."""

    def __init__(self, errors: list[str]) -> None:
        more = f" (and {len(errors) - 1} more; fleet check shows all)" if len(errors) > 1 else ""
        super().__init__(errors[0] + more)
        self.errors = errors


def split_flags(values: Mapping[str, Any]) -> tuple[FleetOptions, dict[str, Any]]:
    """Return the flags that describe the fleet, and kubelet's."""
    options = {name.replace("-", "_"): values[name] for name in _OPTIONS if name in values}
    return FleetOptions(**options), {name: value for name, value in values.items() if name in FLAGS}


def read_standard_input() -> str:
    """Return what is piped into the command. Raises ConfigError where that is no text."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read standard input: {error}") from error


def load_fleet(
    options: FleetOptions, flags: Mapping[str, Any], *, read_stdin: Callable[[], str] = read_standard_input
) -> Fleet:
    """Return the fleet that the options describe. Kubelet's flags hold for all of its nodes, and win over files.

    Raises ConfigError; InvalidFleet where it has several errors.
    """
    for flag in _OF_ONE_NODE:
        if flag in flags:
            raise ConfigError(f"--{flag} is for one node")
    if options.filename:
        return _from_file(options, flags, read_stdin)
    name = options.name or DEFAULT_NAME
    check_name(name, "--name")
    if not options.describes_group:
        return Fleet(name=name, groups=(), seed=options.seed or 0)
    document = GroupDocument(
        name=GROUP_OF_FLAGS,
        count=options.count,
        name_template=options.name_template,
        like=options.like,
        keep_provider_ids=options.keep_provider_ids,
    )
    builder = GroupBuilder(flags, directory=Path(), catalogue=None, read_stdin=read_stdin)
    try:
        return Fleet(name=name, groups=(builder.group(document, _flag),), seed=options.seed or 0)
    except GroupError as error:
        raise ConfigError(f"{_flag(error.field)}: {error}") from error


def fleet_from_flags(values: Mapping[str, Any], *, read_stdin: Callable[[], str] = read_standard_input) -> Fleet:
    """Return the fleet of a command line: of the parsed flags of `fleet`, and of kubelet's. Raises as load_fleet."""
    options, flags = split_flags(values)
    return load_fleet(options, flags, read_stdin=read_stdin)


def _from_file(options: FleetOptions, flags: Mapping[str, Any], read_stdin: Callable[[], str]) -> Fleet:
    file = options.filename
    text = read_stdin() if file == STDIN else read_text(Path(file))
    directory = Path() if file == STDIN else Path(file).parent
    try:
        document = fleet_document(text)
        catalogue = directory / document.catalogue if document.catalogue else None
        builder = GroupBuilder(
            flags,
            directory=directory,
            catalogue=Path(options.catalogue) if options.catalogue else catalogue,
            read_stdin=read_stdin,
        )
        name = options.name or document.metadata.name or DEFAULT_NAME
        check_name(name, "--name" if options.name else "metadata.name")
        seed = document.seed if options.seed is None else options.seed
        return Fleet(name=name, groups=_groups(document, builder), seed=seed)
    except GroupError as error:
        raise ConfigError(f"{file}: {_field(error.position, error.field)}: {error}") from error
    except InvalidFleet as error:
        raise InvalidFleet([f"{file}: {line}" for line in error.errors]) from error
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def _groups(document: FleetDocument, builder: GroupBuilder) -> tuple[Group, ...]:
    groups, errors = [], []
    for position, value in enumerate(document.groups):
        place: Place = partial(_field, position)
        try:
            groups.append(builder.group(decoded(GroupDocument, value, f"groups[{position}]"), place))
        except ConfigError as error:
            errors.append(str(error))
    if errors:
        raise InvalidFleet(errors)
    if not groups:
        raise ConfigError("groups: there is none")
    return tuple(groups)


def _field(position: int, field: str) -> str:
    return f"groups[{position}].{field}"


def _flag(field: str) -> str:
    return _FLAGS.get(field, field)
