"""Nodes that others create and delete, and that are kept alive while they exist."""

from dataclasses import dataclass, replace

from agent.core.config import NodeConfig
from agent.core.errors import ConfigError
from agent.core.fleet import NodePlan, Startup, identified, placed_anywhere
from agent.core.labels import check_label_syntax
from agent.core.machine import machine_of
from agent.core.model import NodeObject
from agent.core.node import OWN_ADDRESSES
from agent.core.quantity import parse_amounts

_GROUP = "adopted"
_ARCHITECTURE_LABEL = "kubernetes.io/arch"


@dataclass(frozen=True, slots=True)
class AdoptionSelector:
    """Selects Nodes by a label, or by an annotation with the same key and value."""

    key: str
    value: str

    @classmethod
    def parse(cls, flag: str, text: str) -> "AdoptionSelector":
        """Read `KEY=VALUE`; a ConfigError names the flag."""
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f'{flag} must be LABEL=VALUE, such as kwok.x-k8s.io/node=fake, not "{text}"')
        try:
            check_label_syntax({key: value})
        except ConfigError as error:
            raise ConfigError(f"{flag}: {error}") from error
        return cls(key, value)

    def matches(self, node: NodeObject) -> bool:
        """Return whether a Node is selected."""
        metadata = node["metadata"]
        kinds = (metadata.get("labels") or {}, metadata.get("annotations") or {})
        return any(marks.get(self.key) == self.value for marks in kinds)

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def adopted_plan(node: NodeObject, base: NodeConfig) -> NodePlan:
    """Return the plan of a node that keeps a Node alive as its creator made it; the rest is as in `base`.

    Raises ValueError for a quantity that cannot be one.
    """
    metadata, status = node["metadata"], node.get("status", {})
    registration = replace(
        base.registration,
        register_node=False,
        adopted=True,
        on_node_deleted="idle",
        deregister=False,
        external_cloud_provider=False,
        keeps_addresses=bool(status.get("addresses")) and OWN_ADDRESSES not in (metadata.get("annotations") or {}),
    )
    config = replace(base, node_name=metadata["name"], registration=registration)
    architecture = (metadata.get("labels") or {}).get(_ARCHITECTURE_LABEL, "amd64")
    machine = machine_of(parse_amounts(status.get("capacity") or {}), architecture=architecture)
    plan = NodePlan(
        group=_GROUP, index=0, config=config, machine=identified(machine, metadata["uid"]), startup=Startup()
    )
    return placed_anywhere(plan)
