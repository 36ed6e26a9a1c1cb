"""What an answer must look like to be let in: the fields that our decisions read, with their types.

The loops index into objects freely because nothing passes this door that they could stumble over. All other fields
may be anything.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, MsgspecError, Struct, UnsetType, ValidationError, convert, field, to_builtins
from msgspec.json import decode

from agent.core.model import Object
from agent.core.quantity import parse_quantity
from agent.core.times import parse_time
from agent.ports import Unavailable

Word = Annotated[str, Meta(min_length=1)]
# What may become a part of a path, a key or a line of the log: no slash, no blank, nothing that has to be escaped.
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][-A-Za-z0-9_.:]{0,252}\Z")]
Version = Annotated[str, Meta(pattern=r"^[!-~]{1,8192}\Z")]  # a number as a rule, but whoever relies on that is wrong
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Amount(str):
    """A quantity that can be read."""

    __slots__ = ()


class Moment(str):
    """A time that can be read."""

    __slots__ = ()


class Owner(Struct):
    """An ownerReference."""

    uid: str = ""
    kind: str = ""


class Metadata(Struct, rename="camel"):
    """What every object that the API server stores has."""

    name: Name
    uid: Name
    resource_version: Version
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []


class Stored(Struct):
    """An object of a kind of which we read nothing but the metadata."""

    metadata: Metadata


class Condition(Struct, rename="camel"):
    """One condition of a Node."""

    type: Word
    status: str  # empty after a patch of heartbeat times met a Node that was just replaced: the next report mends it
    last_transition_time: str | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.type == "Ready" and self.last_transition_time is UNSET:
            raise ValueError("Ready without lastTransitionTime")


class NodeInfo(Struct, frozen=True):
    """What a Node tells about its machine, of which only the boot is ever compared."""

    boot_id: str = field(default="", name="bootID")


class NodeStatus(Struct, rename="camel", frozen=True):
    """What a Node tells about itself."""

    conditions: list[Condition] = []
    addresses: list[dict[str, str]] = []
    capacity: dict[str, Amount] = {}
    allocatable: dict[str, Amount] = {}
    node_info: NodeInfo = NodeInfo()


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


class _User(Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class TokenReviewStatus(Struct):
    """Who bears a token."""

    authenticated: bool = False
    error: str = ""
    user: _User | None = None


class AccessReviewStatus(Struct):
    """Whether somebody may do something."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""


def metadata(content: bytes) -> Object:
    """What is read of the metadata of an object, however odd its rest is; Unavailable where that makes no sense."""
    try:
        known = decode(content, type=Stored).metadata
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(f"an object makes no sense: {error}") from None
    return to_builtins(known)  # type: ignore[no-any-return]


def misfit(answer: Object, shape: type[Struct]) -> str | None:
    """Why an answer is no object of this shape; nothing where it is one."""
    try:
        convert(answer, shape, dec_hook=_read)
    except (ValidationError, RecursionError) as error:
        return str(error)
    return None


def _read(kind: type, value: Any) -> Any:
    """Read a text with the very function that will read it later; a ValueError is a misfit."""
    if not isinstance(value, str):
        raise ValueError(f"expected `str`, got `{type(value).__name__}`")  # noqa: TRY004  as msgspec wants it
    if kind is Amount:
        parse_quantity(value)
    else:
        parse_time(value)
    return kind(value)
