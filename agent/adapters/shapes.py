"""The shapes that objects of the API server must have: the fields that our decisions read, with their types.

Controllers index into objects freely, because no answer that lacks a shape gets past this check. All other fields may
be anything. An API server guarantees all of it: a pod without its shape is skipped.

The TypedDicts of core/model.py describe the same objects to mypy. They cannot be the check: it asks for more than types
(names that may become paths, quantities and times that parse, numbers within their range), and it takes the nulls that
Go writes. A test holds the field names of both together.
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
Seconds = Annotated[int, Meta(ge=-(2**31), le=2**31)]


class Amount(str):
    """A quantity that parses."""

    __slots__ = ()


class Moment(str):
    """A time that parses."""

    __slots__ = ()


class Owner(Struct):
    """An ownerReference."""

    uid: str = ""
    kind: str = ""


class Metadata(Struct, rename="camel"):
    """The metadata that every stored object has."""

    name: Name
    uid: Name
    resource_version: Version
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []


class Stored(Struct):
    """An object of a kind of which we read nothing but the metadata."""

    metadata: Metadata


class ConditionShape(Struct, rename="camel"):
    """One condition of a Node."""

    type: Word
    status: str  # empty after a patch of heartbeat times met a Node that was just replaced: the next report mends it
    last_transition_time: str | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.type == "Ready" and self.last_transition_time is UNSET:
            raise ValueError("Ready without lastTransitionTime")


class NodeSystemInfo(Struct, frozen=True):
    """The nodeInfo of a Node, of which only the boot ID is ever compared."""

    boot_id: str = field(default="", name="bootID")


class NodeStatusShape(Struct, rename="camel", frozen=True):
    """The status of a Node."""

    conditions: list[ConditionShape] = []
    addresses: list[dict[str, str]] = []
    capacity: dict[str, Amount] = {}
    allocatable: dict[str, Amount] = {}
    node_info: NodeSystemInfo = NodeSystemInfo()


class TaintShape(Struct, frozen=True):
    """A taint."""

    key: str
    effect: str
    value: str = ""


class NodeSpecShape(Struct, frozen=True):
    """The spec of a Node."""

    pod_cidrs: list[str] = field(default=[], name="podCIDRs")
    unschedulable: bool = False
    taints: list[TaintShape] | None = None


class NodeShape(Stored):
    """A Node."""

    spec: NodeSpecShape = NodeSpecShape()
    status: NodeStatusShape = NodeStatusShape()


class LeaseShape(Stored):
    """A Lease."""

    spec: dict[str, Any] = {}


class _User(Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class TokenReviewStatus(Struct):
    """The status of a TokenReview."""

    authenticated: bool = False
    error: str = ""
    user: _User | None = None


class AccessReviewStatus(Struct):
    """The status of a SubjectAccessReview."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""


class ResourcesShape(Struct):
    """Requests and limits of a container or a pod."""

    limits: dict[str, Amount] | None = None
    requests: dict[str, Amount] | None = None


class PortShape(Struct, rename="camel"):
    """A port of a container."""

    host_port: Int32 = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class ProbeShape(Struct, rename="camel"):
    """A probe, of which only the initial delay counts."""

    initial_delay_seconds: Seconds = 0


class MountShape(Struct, rename="camel"):
    """A volume mount of a container."""

    name: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""


class FieldReference(Struct, rename="camel"):
    """A field of the pod, for the downward API."""

    field_path: str = ""


class ResourceReference(Struct, rename="camel"):
    """A request or limit of a container, for the downward API."""

    resource: str = ""
    container_name: str = ""
    divisor: Amount | None = None


class ValueSource(Struct, rename="camel"):
    """Where the value of a variable comes from."""

    field_ref: FieldReference | None = None
    resource_field_ref: ResourceReference | None = None


class VariableShape(Struct, rename="camel"):
    """An environment variable of a container."""

    name: str
    value: str | None = None
    value_from: ValueSource | None = None


class DownwardFile(Struct, rename="camel"):
    """A file of the downward API."""

    path: str = ""
    field_ref: FieldReference | None = None
    resource_field_ref: ResourceReference | None = None


class DownwardFiles(Struct):
    """The files of a volume or of a source of one."""

    items: list[DownwardFile] | None = None


class VolumeSource(Struct):
    """What is read of a volume, or of a source of a projected one."""

    downward_api: DownwardFiles | None = field(default=None, name="downwardAPI")


class ProjectedShape(Struct):
    """A projected volume."""

    sources: list[VolumeSource] | None = None


class VolumeShape(VolumeSource, kw_only=True):
    """A volume of a pod."""

    name: str
    projected: ProjectedShape | None = None


class ContainerShape(Struct, rename="camel"):
    """A container of a pod."""

    name: Word
    image: str
    image_pull_policy: str = ""
    resources: ResourcesShape | None = None
    ports: list[PortShape] | None = None
    restart_policy: str | None = None
    startup_probe: ProbeShape | None = None
    readiness_probe: ProbeShape | None = None
    volume_mounts: list[MountShape] | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[VariableShape] | None = None


class Requirement(Struct):
    """A requirement for a label or a field."""

    key: str
    operator: str
    values: list[str] | None = None


class SelectorTerm(Struct, rename="camel"):
    """Requirements that must all match."""

    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Struct, rename="camel"):
    """Terms of which one must match."""

    node_selector_terms: list[SelectorTerm] | None = None


class NodeAffinity(Struct):
    """The node affinity of a pod."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Struct, rename="camel"):
    """The affinity of a pod."""

    node_affinity: NodeAffinity | None = None


class Toleration(Struct):
    """A toleration of a pod."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Named(Struct):
    """An entry of which only the name counts."""

    name: str


class SecurityContext(Struct):
    """The security context of a pod."""

    sysctls: list[Named] | None = None


class ReadinessGate(Struct, rename="camel"):
    """A readiness gate: a condition that other controllers set."""

    condition_type: str


class PodSpecShape(Struct, rename="camel"):
    """The spec of a pod."""

    containers: Annotated[list[ContainerShape], Meta(min_length=1)]
    init_containers: list[ContainerShape] | None = None
    ephemeral_containers: list[ContainerShape] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    overhead: dict[str, Amount] | None = None
    resources: ResourcesShape | None = None
    priority: Int32 | None = None
    restart_policy: str | None = None
    active_deadline_seconds: Seconds | None = None
    termination_grace_period_seconds: Int64 | None = None
    security_context: SecurityContext | None = None
    os: Named | None = None
    readiness_gates: list[ReadinessGate] | None = None
    volumes: list[VolumeShape] | None = None
    node_name: str | None = None
    service_account_name: str | None = None


class TerminatedState(Struct, rename="camel"):
    """The state of a container that has ended."""

    exit_code: Int32
    started_at: Moment | None = None
    finished_at: Moment | None = None


class RunningState(Struct, rename="camel"):
    """The state of a container that runs; the start time may be missing."""

    started_at: Moment | None = None


class ContainerStateShape(Struct):
    """The state of a container."""

    running: RunningState | UnsetType = UNSET
    terminated: TerminatedState | UnsetType = UNSET
    waiting: dict[str, str] | UnsetType = UNSET


class ContainerStatusShape(Struct, rename="camel"):
    """The status of a container."""

    name: str
    state: ContainerStateShape
    last_state: ContainerStateShape
    restart_count: Int32
    container_id: str = field(default="", name="containerID")


class PodCondition(Struct):
    """One condition of a pod."""

    type: Word
    status: str


class PodIP(Struct):
    """An address of a pod."""

    ip: str


class PodStatusShape(Struct, rename="camel", frozen=True):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatusShape] | None = None
    init_container_statuses: list[ContainerStatusShape] | None = None
    ephemeral_container_statuses: list[ContainerStatusShape] | None = None
    pod_ips: list[PodIP] | None = field(default=None, name="podIPs")
    start_time: Moment | None = None
    qos_class: str = ""


class PodMetadata(Metadata, rename="camel", kw_only=True):
    """The metadata of a pod."""

    namespace: Name
    deletion_timestamp: Moment | UnsetType = UNSET
    deletion_grace_period_seconds: Int64 | None = None
    generation: Int64 | None = None


class PodShape(Stored):
    """A pod that is bound to a node."""

    metadata: PodMetadata
    spec: PodSpecShape
    status: PodStatusShape = PodStatusShape()


def metadata(content: bytes) -> Object:
    """Decode the metadata of an object, however odd its rest is; raise Unavailable if these do not have their shape."""
    try:
        stored = decode(content, type=Stored)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(f"an object makes no sense: {error}") from None
    return to_builtins(stored.metadata)  # type: ignore[no-any-return]


def misfit(answer: Object, shape: type[Struct]) -> str | None:
    """Return why an answer does not have a shape; None if it has it."""
    try:
        convert(answer, shape, dec_hook=_read)
    except (ValidationError, RecursionError) as error:
        return str(error)
    return None


def _read(kind: type, value: Any) -> Any:
    """Parse a text with the very function that will parse it later; a ValueError is a misfit."""
    if not isinstance(value, str):
        raise ValueError(f"expected `str`, got `{type(value).__name__}`")  # noqa: TRY004  as msgspec wants it
    if kind is Amount:
        parse_quantity(value)
    else:
        parse_time(value)
    return kind(value)
