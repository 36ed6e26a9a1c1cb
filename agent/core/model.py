"""The objects of the API that a node reads and writes, as TypedDicts, and the host as frozen values.

A TypedDict describes the fields that are read or written here. It checks and converts nothing at run time, so fields
that it does not name stay in the object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal, Required, TypedDict

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, in the API's own JSON shape."""

IPAddress = IPv4Address | IPv6Address


class OwnerReference(TypedDict, total=False):
    """The owner of an object, which the garbage collector follows."""

    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool


class ObjectMeta(TypedDict, total=False):
    """The metadata of any object."""

    name: Required[str]
    namespace: str
    uid: str
    resourceVersion: str
    generation: int
    creationTimestamp: str
    deletionTimestamp: str
    deletionGracePeriodSeconds: int
    labels: dict[str, str]
    annotations: dict[str, str]
    ownerReferences: list[OwnerReference]


class Condition(TypedDict, total=False):
    """A condition of a Node or of a Pod."""

    type: Required[str]
    status: Required[str]
    reason: str
    message: str
    lastHeartbeatTime: str  # Nodes only
    lastProbeTime: None  # Pods only
    lastTransitionTime: str
    observedGeneration: int


class NodeAddress(TypedDict):
    """An address of a Node."""

    type: str  # Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS
    address: str


class NodeTaint(TypedDict, total=False):
    """A taint of a Node."""

    key: Required[str]
    value: str
    effect: Required[str]


class NodeSpec(TypedDict, total=False):
    """What others want of a Node."""

    podCIDRs: list[str]
    providerID: str
    taints: list[NodeTaint]
    unschedulable: bool


class NodeStatus(TypedDict, total=False):
    """What a Node reports about itself."""

    addresses: list[NodeAddress]
    allocatable: dict[str, str]
    capacity: dict[str, str]
    conditions: list[Condition]
    daemonEndpoints: Object
    declaredFeatures: list[str]
    nodeInfo: Object


class NodeObject(TypedDict, total=False):
    """A Node as the API has it."""

    apiVersion: str
    kind: str
    metadata: Required[ObjectMeta]
    spec: NodeSpec
    status: NodeStatus


class CSINodeObject(TypedDict, total=False):
    """A CSINode as the API has it."""

    apiVersion: str
    kind: str
    metadata: Required[ObjectMeta]
    spec: Object


class LeaseSpec(TypedDict, total=False):
    """Who holds a Lease, and since when."""

    holderIdentity: str
    leaseDurationSeconds: int
    renewTime: str


class LeaseObject(TypedDict, total=False):
    """A Lease as the API has it."""

    apiVersion: str
    kind: str
    metadata: Required[ObjectMeta]
    spec: LeaseSpec


class ResourceRequirements(TypedDict, total=False):
    """Requests and limits of a container or of a pod."""

    limits: dict[str, str]
    requests: dict[str, str]


class Container(TypedDict, total=False):
    """A container of a pod's spec: a main, an init or an ephemeral one."""

    name: Required[str]
    image: Required[str]
    args: list[str]
    command: list[str]
    env: list[Object]
    imagePullPolicy: str
    ports: list[Object]
    readinessProbe: Object
    resources: ResourceRequirements
    restartPolicy: str  # Always makes an init container a sidecar
    startupProbe: Object
    volumeMounts: list[Object]


class PodSpec(TypedDict, total=False):
    """What a user wants of a pod."""

    activeDeadlineSeconds: int
    affinity: Object
    containers: Required[list[Container]]
    ephemeralContainers: list[Container]
    hostNetwork: bool
    initContainers: list[Container]
    nodeName: str
    nodeSelector: dict[str, str]
    os: Object
    overhead: dict[str, str]
    priority: int
    readinessGates: list[Object]
    resources: ResourceRequirements
    restartPolicy: str
    securityContext: Object
    serviceAccountName: str
    terminationGracePeriodSeconds: int
    tolerations: list[Object]
    volumes: list[Object]


class ContainerWaiting(TypedDict, total=False):
    """The state of a container that has not started, or not again."""

    reason: str
    message: str


class ContainerRunning(TypedDict, total=False):
    """The state of a container that runs."""

    startedAt: str


class ContainerTerminated(TypedDict, total=False):
    """The state of a container that has ended."""

    containerID: str
    exitCode: Required[int]
    finishedAt: str | None
    message: str
    reason: str
    startedAt: str | None


class ContainerState(TypedDict, total=False):
    """One of three; a container without any waits."""

    waiting: ContainerWaiting
    running: ContainerRunning
    terminated: ContainerTerminated


class ContainerStatus(TypedDict, total=False):
    """What a node reports about a container."""

    allocatedResources: dict[str, str]
    containerID: str
    image: Required[str]
    imageID: Required[str]
    lastState: Required[ContainerState]
    name: Required[str]
    ready: Required[bool]
    resources: ResourceRequirements
    restartCount: Required[int]
    started: bool
    state: Required[ContainerState]
    volumeMounts: list[Object]


class PodStatus(TypedDict, total=False):
    """What a node reports about a pod."""

    allocatedResources: dict[str, str]
    conditions: list[Condition]
    containerStatuses: list[ContainerStatus]
    ephemeralContainerStatuses: list[ContainerStatus]
    hostIP: str
    hostIPs: list[dict[str, str]]
    initContainerStatuses: list[ContainerStatus]
    message: str
    observedGeneration: int
    phase: str
    podIP: str
    podIPs: list[dict[str, str]]
    qosClass: str
    reason: str
    resourceClaimStatuses: list[Object]
    resources: ResourceRequirements
    startTime: str


class PodObject(TypedDict, total=False):
    """A Pod as the API has it."""

    apiVersion: str
    kind: str
    metadata: Required[ObjectMeta]
    spec: Required[PodSpec]
    status: PodStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    """One mounted filesystem, as statvfs reports it."""

    capacity_bytes: int
    available_bytes: int  # to those without privileges
    inodes: int
    inodes_free: int
    used_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A network interface and its addresses."""

    name: str
    up: bool
    addresses: tuple[IPAddress, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRoute:
    """A default route: the interface it leaves by, and its address family."""

    interface: str
    version: Literal[4, 6]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network of the host, from which the node's address is chosen."""

    interfaces: tuple[Interface, ...] = ()
    default_routes: tuple[DefaultRoute, ...] = ()
    node_name_addresses: tuple[IPAddress, ...] = ()  # what the resolver says to the node's name


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSnapshot:
    """The host at one moment; a field that could not be read yet has its default."""

    cpu_millicores: int = 0
    online_cpus: frozenset[int] = frozenset()
    memory_bytes: int = 0
    memory_available_bytes: int | None = None  # total less the root working set: not MemAvailable
    swap_bytes: int = 0
    hugepages_bytes: Mapping[int, int] = field(default_factory=dict)  # page size → all pages of it
    nodefs: Filesystem | None = None
    pids_max: int = 0
    pids_used: int | None = None
    network: Network = Network()
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    cgroup_version: Literal[0, 1, 2] = 0  # 0: there are none
    kernel_version: str = ""
    os_image: str = "Unknown"
    operating_system: str = "linux"  # in Go's spelling, as the next
    architecture: str = "amd64"


def is_newer(left: str, right: str) -> bool:
    """Return whether one resourceVersion is newer than another; False where one of them is no number."""
    if not all(text.isascii() and text.isdecimal() for text in (left, right)):
        return False
    # Without int(), which raises for thousands of digits.
    left, right = left.lstrip("0"), right.lstrip("0")
    return (len(left), left) > (len(right), right)
