"""One group of a fleet: its document, and the files and flags that it builds on → Group."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from agent.adapters.fleet.catalogue import Catalogue, InstanceType, shipped_catalogue
from agent.adapters.fleet.documents import GroupDocument, StartupDocument, TaintDocument, amounts, texts
from agent.adapters.fleet.like import source_nodes
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import from_flags
from agent.adapters.settings.strict import strict_errors
from agent.core.capacity import check_reservations, is_extended
from agent.core.config import NodeConfig
from agent.core.errors import ConfigError
from agent.core.fleet import ZONE_LABEL, Group, NodeModel, StartupRule
from agent.core.labels import EFFECTS, Taint, label_value_faults, qualified_name_faults
from agent.core.machine import is_of_machine, machine_of
from agent.core.name_template import NameTemplate
from agent.core.node_copy import (
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    SourceNode,
    copied_node,
    merged_taints,
)
from agent.core.quantity import Quantity
from agent.core.times import parse_seconds

Place = Callable[[str], str]
"""Returns where a field of a group was written, for errors: its path in a file, or a flag."""

STDIN = "-"
_DEFAULT_TEMPLATE = "{group}-{index}"
_MOST_WEIGHT = 1000
_LABEL_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
_ALL = 100.0


def check_name(name: str, place: str) -> None:
    """Raise a ConfigError for a name of a fleet or group that cannot be a label's value and a part of Nodes' names."""
    if not _LABEL_NAME.fullmatch(name):
        raise ConfigError(
            f'{place}: "{name}" is no name: up to 63 lower case letters, digits and "-", a letter or digit at both ends'
        )


def read_text(path: Path) -> str:
    """Return a file's text. Raises ConfigError that names the file."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


class _Base(NamedTuple):
    """The settings of a group without what its document adds."""

    config: NodeConfig
    has_max_pods: bool  # whether somebody set them


class GroupBuilder:
    """Builds the groups of one fleet; a file that several of them name is read once."""

    def __init__(
        self, flags: Mapping[str, Any], *, directory: Path, catalogue: Path | None, read_stdin: Callable[[], str]
    ) -> None:
        self._flags = flags
        self._directory = directory  # what paths in the documents are relative to
        self._catalogue = cache(partial(_catalogue, catalogue))
        self._nodes = cache(partial(_nodes, directory, read_stdin))

    def group(self, document: GroupDocument, place: Place) -> Group:
        """Return the group of a document. Raises ConfigError that begins with the place of what is wrong."""
        check_name(document.name, place("name"))
        if document.count is None and not document.like:
            raise ConfigError(f"{place('count')}: missing; only a group with like needs none")
        base = self._base(document, place)
        config = _with_document(base.config, document, place)
        if document.like:
            models = self._copies(document, config, place)
        else:
            models = (self._model(document, config, place, has_max_pods=base.has_max_pods),)
        return Group(
            name=document.name,
            count=len(models) if document.count is None else document.count,
            models=models,
            template=_template(document, models, place),
            zones=_zones(document.zones, place("zones")),
            startup=_startup(document.startup, place),
        )

    def _base(self, document: GroupDocument, place: Place) -> _Base:
        """Return the settings that kubelet's flags and the group's own KubeletConfiguration make."""
        flags = {**self._flags, "hostname-override": document.name}  # it stands for the names of all nodes
        if document.config:
            flags["config"] = str(self._directory / document.config)
        if not flags.get("config"):
            return _base(flags)
        with _at(place("config")):
            if not Path(flags["config"]).exists():  # kubelet's own words name the file three times
                raise ConfigError(f"cannot read {flags['config']}: No such file or directory")
            return _base(flags)

    def _model(self, document: GroupDocument, config: NodeConfig, place: Place, *, has_max_pods: bool) -> NodeModel:
        """Return the one model of a group that is no copy: an instance type, or the machine that its capacity says."""
        if document.keep_provider_ids:
            raise ConfigError(f"{place('keepProviderIDs')}: is for copies, which like asks for")
        resources: Mapping[str, Quantity] = {}
        architecture, system = "amd64", "linux"
        if document.instance_type:
            with _at(place("instanceType")):
                instance = self._catalogue().get(document.instance_type)
            config = _of_instance(config, instance, has_max_pods=has_max_pods)
            resources, architecture, system = instance.resources, instance.architecture, instance.operating_system
        with _at(place("config" if document.config else "capacity")):
            machine = machine_of(
                {**resources, **config.resources.overrides}, architecture=architecture, operating_system=system
            )
            check_reservations(config, machine)
        return NodeModel(config=config, machine=machine)

    def _copies(self, document: GroupDocument, config: NodeConfig, place: Place) -> tuple[NodeModel, ...]:
        if document.instance_type:
            raise ConfigError(f"{place('instanceType')}: does not go together with like")
        with _at(place("like")):
            nodes = self._nodes(document.like)
        models = []
        for node in nodes:
            with _at(f"{place('like')}: {document.like}: node {node['metadata']['name']}"):
                models.append(
                    copied_node(node, config, keep_provider_id=document.keep_provider_ids, keep_zone=not document.zones)
                )
        return tuple(models)


def _base(flags: Mapping[str, Any]) -> _Base:
    settings = from_flags(flags)
    for error in strict_errors(settings):
        raise ConfigError(error)
    if settings.kubelet["providerID"]:
        raise ConfigError("providerID is for one node")
    return _Base(build_config(settings).node, has_max_pods="maxPods" in settings.origins)


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Have the error of a value that is wrong begin with its place."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from error


def _catalogue(path: Path | None) -> Catalogue:
    return Catalogue(read_text(path), str(path)) if path else shipped_catalogue()


def _nodes(directory: Path, read_stdin: Callable[[], str], name: str) -> list[SourceNode]:
    text = read_stdin() if name == STDIN else read_text(directory / name)
    with _at(name):
        return source_nodes(text)


def _with_document(config: NodeConfig, document: GroupDocument, place: Place) -> NodeConfig:
    """Return the settings with the labels, taints and resources of a group."""
    registration, resources = config.registration, config.resources
    labels = {**registration.labels, **texts(document.labels, place("labels"))}
    if HOSTNAME_LABEL in labels:
        raise ConfigError(f"{place('labels')}: {HOSTNAME_LABEL} is the name of each node")
    taints = [_taint(taint, f"{place('taints')}[{position}]") for position, taint in enumerate(document.taints)]
    with _at(place("labels")):
        registration = replace(registration, labels=labels, taints=merged_taints(registration.taints, taints))
    extended = amounts(document.extended_resources, place("extendedResources"))
    for name in extended:
        if qualified_name_faults(name) or not is_extended(name):
            raise ConfigError(f'{place("extendedResources")}: "{name}" is no extended resource, such as nvidia.com/gpu')
    resources = replace(
        resources,
        overrides={**resources.overrides, **amounts(document.capacity, place("capacity"))},
        extended={**resources.extended, **extended},
    )
    return replace(config, registration=registration, resources=resources)


def _taint(document: TaintDocument, place: str) -> Taint:
    if faults := qualified_name_faults(document.key):
        raise ConfigError(f'{place}.key: "{document.key}": {faults[0]}')
    if faults := label_value_faults(document.value):
        raise ConfigError(f'{place}.value: "{document.value}": {faults[0]}')
    if document.effect not in EFFECTS:
        raise ConfigError(f'{place}.effect: "{document.effect}" is none of {", ".join(EFFECTS)}')
    return Taint(document.key, document.value, document.effect)


def _of_instance(config: NodeConfig, instance: InstanceType, *, has_max_pods: bool) -> NodeConfig:
    """Return the settings of a node on an instance of this type: its label, its pods, and its devices."""
    labels = {INSTANCE_TYPE_LABEL: instance.name, **config.registration.labels}
    resources, devices = config.resources, dict(instance.resources)
    pods = devices.pop("pods", None)
    if pods and not has_max_pods:
        resources = replace(resources, max_pods=pods.value)
    extended = {name: amount for name, amount in devices.items() if not is_of_machine(name)}
    return replace(
        config,
        registration=replace(config.registration, labels=labels),
        resources=replace(resources, extended={**extended, **resources.extended}),
    )


def _template(document: GroupDocument, models: Iterable[NodeModel], place: Place) -> NameTemplate | None:
    if document.name_template is None:
        return None if document.like else NameTemplate.parse(_DEFAULT_TEMPLATE)
    with _at(place("nameTemplate")):
        template = NameTemplate.parse(document.name_template)
        has_zones = document.zones or all(ZONE_LABEL in model.config.registration.labels for model in models)
        if template.has_zone and not has_zones:
            raise ConfigError(f'"{template.text}": {{zone}} needs zones')
    return template


def _zones(weights: Mapping[str, object], place: str) -> dict[str, int]:
    zones = {}
    for zone, weight in weights.items():
        if not zone or label_value_faults(zone):
            raise ConfigError(f'{place}: "{zone}" is no name of a zone: it cannot be the value of a label')
        if type(weight) is not int or not 0 <= weight <= _MOST_WEIGHT:
            raise ConfigError(f"{place}.{zone}: {weight} is no weight from 0 to {_MOST_WEIGHT}")
        if weight:
            zones[zone] = weight
    if weights and not zones:
        raise ConfigError(f"{place}: all weights are 0")
    return zones


def _startup(document: StartupDocument, place: Place) -> StartupRule:
    here = place("startup")
    rule = StartupRule(
        delay_seconds=_seconds(document.delay, f"{here}.delay"),
        jitter_seconds=_seconds(document.jitter, f"{here}.jitter"),
        never_register_percent=_percent(document.never_register, f"{here}.neverRegister"),
        never_ready_percent=_percent(document.never_ready, f"{here}.neverReady"),
    )
    if rule.never_register_percent + rule.never_ready_percent > _ALL:
        raise ConfigError(f"{here}: neverRegister and neverReady are more than 100% together")
    return rule


def _seconds(text: str, place: str) -> float:
    with _at(place):
        seconds = parse_seconds(text)
        if seconds < 0:
            raise ConfigError(f"{text} is negative")
        return seconds


def _percent(text: str | float, place: str) -> float:
    match = _PERCENT.fullmatch(str(text))
    if not match:
        raise ConfigError(f"{place}: {text} is no percentage such as 1%")
    if float(match[1]) > _ALL:
        raise ConfigError(f"{place}: {text} is more than 100%")
    return float(match[1])
