"""The shape that a pod must have to be let in.

An API server guarantees all of it: a pod without this shape is skipped.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from agent.adapters.shapes import Amount, Int32, Int64, Metadata, Moment, Name, Stored, Word

Seconds = Annotated[int, Meta(ge=-(2**31), le=2**31)]


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


class PodSpec(Struct, rename="camel"):
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


class TerminatedState(Struct, rename="camel"):
    """The state of a container that has ended."""

    exit_code: Int32
    started_at: Moment | None = None
    finished_at: Moment | None = None


class RunningState(Struct, rename="camel"):
    """The state of a container that runs; the start time may be missing."""

    started_at: Moment | None = None


class ContainerState(Struct):
    """The state of a container."""

    running: RunningState | UnsetType = UNSET
    terminated: TerminatedState | UnsetType = UNSET
    waiting: dict[str, str] | UnsetType = UNSET


class ContainerStatus(Struct, rename="camel"):
    """The status of a container."""

    name: str
    state: ContainerState
    last_state: ContainerState
    restart_count: Int32
    container_id: str = field(default="", name="containerID")


class PodCondition(Struct):
    """One condition of a pod."""

    type: Word
    status: str


class PodIP(Struct):
    """An address of a pod."""

    ip: str


class PodStatus(Struct, rename="camel", frozen=True):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
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
    spec: PodSpec
    status: PodStatus = PodStatus()
