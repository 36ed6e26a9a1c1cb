"""What an answer must look like to be let in: the fields that our decisions read, with their types.

The loops index into objects freely because nothing passes this door that they could stumble over. All other fields
may be anything.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, field

from agent.core.model import Object

Word = Annotated[str, Meta(min_length=1)]
Amount = Annotated[str, Meta(pattern=r"^[+-]?\d{1,40}(\.\d{0,40})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?$")]


class Owner(Struct):
    """An ownerReference."""

    uid: str = ""
    kind: str = ""


class Metadata(Struct, rename="camel"):
    """What every object that the API server stores has."""

    name: Word
    uid: Word
    resource_version: Word
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []


class Stored(Struct):
    """An object of a kind of which we read nothing but the metadata."""

    metadata: Metadata


class Condition(Struct, rename="camel"):
    """One condition of a Node."""

    type: Word
    status: Word
    last_transition_time: str | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.type == "Ready" and self.last_transition_time is UNSET:
            raise ValueError("Ready without lastTransitionTime")


class NodeStatus(Struct, rename="camel", frozen=True):
    """What a Node tells about itself."""

    conditions: list[Condition] = []
    addresses: list[dict[str, str]] = []
    capacity: dict[str, Amount] = {}
    allocatable: dict[str, Amount] = {}
    node_info: dict[str, Any] = {}


class TaintShape(Struct, frozen=True):
    """A reason for pods to stay away."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Struct, frozen=True):
    """What others want of a Node."""

    pod_cidrs: list[str] = field(default=[], name="podCIDRs")
    unschedulable: bool = False
    taints: list[TaintShape] | None = None


class NodeShape(Stored):
    """A Node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseShape(Stored):
    """A Lease."""

    spec: dict[str, Any] = {}


def misfit(answer: Object, shape: type[Stored]) -> str | None:
    """Why an answer is no object of this shape; nothing where it is one."""
    try:
        convert(answer, shape)
    except (ValidationError, RecursionError) as error:
        return str(error)
    return None
