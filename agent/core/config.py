"""Every setting, with its unit and the checks that are ours: those of the process, and those of a node.

Defaults, and what kubelet checks itself, are in agent/adapters/settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal, get_args

from agent.core.errors import ConfigError
from agent.core.labels import Taint, check_label_syntax, subdomain_faults
from agent.core.model import IPAddress
from agent.core.pods.usage import Resource, check_usage
from agent.core.pressure import Threshold
from agent.core.quantity import Quantity
from agent.core.shutdown import GracePeriod

OnNodeDeleted = Literal["register", "idle", "exit"]
StatusPage = Literal["loopback", "all", "none"]
PodsMode = Literal["simulate", "refuse", "ignore"]
PodCommands = Literal["understand", "ignore"]
NodeIPType = Literal["InternalIP", "ExternalIP"]
CapacityFrom = Literal["host", "cgroup"]
AuthorizationMode = Literal["AlwaysAllow", "Webhook"]
LoggingFormat = Literal["text", "json"]
TLSVersion = Literal["", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"]  # "" is the default of Go


def check_choice(flag: str, value: str, choices: Sequence[str]) -> None:
    """Raise a ConfigError that names the choices if the value is none of them."""
    if value not in choices:
        *others, last = choices
        raise ConfigError(f'{flag} must be {", ".join(others)} or {last}, not "{value}"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What the Node is created with."""

    register_node: bool
    adopted: bool  # others create the Node, and what they have written stays
    keeps_addresses: bool  # the addresses of an adopted Node, too, which has had some
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    provider_id: str
    external_cloud_provider: bool  # a cloud controller will set addresses and remove the taint
    controller_attach_detach: bool
    on_node_deleted: OnNodeDeleted  # kubelet idles
    deregister: bool  # whether Node and Lease are removed when we end

    def __post_init__(self) -> None:
        check_label_syntax(self.labels)  # which of them a kubelet accepts, the flag says
        check_choice("--on-node-deleted", self.on_node_deleted, get_args(OnNodeDeleted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """How often the node reports to the API server."""

    status_update_seconds: float  # how often the status is computed
    status_report_seconds: float  # how often it is sent when nothing changed
    lease_duration_seconds: int
    events_per_second: float  # how many events are sent in the long run
    events_at_once: int

    def __post_init__(self) -> None:
        if self.status_update_seconds <= 0:
            raise ConfigError("nodeStatusUpdateFrequency (--node-status-update-frequency) must be greater than 0")
        if self.status_report_seconds <= 0:
            raise ConfigError("nodeStatusReportFrequency (--node-status-report-frequency) must be greater than 0")

    @property
    def lease_renew_seconds(self) -> float:
        """As kubelet: four renewals per lease duration."""
        return self.lease_duration_seconds * 0.25

    @property
    def request_timeout_seconds(self) -> float:
        """How long a heartbeat may take before the next one is worth more."""
        return min(self.status_update_seconds, float(self.lease_duration_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What of the host is offered to pods."""

    max_pods: int
    pods_per_core: int
    kube_reserved: Mapping[str, Quantity]
    system_reserved: Mapping[str, Quantity]
    reserved_cpus: str  # a list such as 0-3,8; it replaces the cpu of both reservations
    local_storage: bool  # localStorageCapacityIsolation: without it ephemeral-storage is not reported
    ignore_eviction: bool  # hard eviction thresholds do not come off allocatable
    overrides: Mapping[str, Quantity]  # reported instead of what the host has
    extended: Mapping[str, Quantity]  # such as nvidia.com/gpu
    allocatable: Mapping[str, Quantity]  # reported instead of what the rest makes of the capacity; empty: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Which shortage counts as pressure."""

    hard: tuple[Threshold, ...]
    soft: tuple[Threshold, ...]
    transition_seconds: float  # how long a condition stays after it was last seen
    max_pod_grace_seconds: int  # how long a pod may take to go below a soft threshold
    as_kubelet: bool  # pressure waits for the next status tick, and capacity is read once


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where this node listens, and to whom."""

    enabled: bool
    address: str  # the API server has to reach it
    port: int  # reported in the Node's daemonEndpoints
    read_only_port: int  # without authentication; 0 switches it off
    healthz_port: int  # 0 switches it off
    healthz_bind_address: str
    status_page: StatusPage  # who sees the page there, and the reasons of /healthz
    anonymous: bool
    client_ca_file: str  # whose certificates are trusted
    trusts_cluster_ca: bool  # those of the API server's CA are, if its credentials name one
    token_reviews: bool  # whether the API server is asked who bears a token
    token_seconds: float  # how long that answer is good
    access_reviews: bool  # whether it is asked who may do what; without, everybody may do everything
    allowed_seconds: float  # how long a yes is good
    denied_seconds: float  # how long a no is good
    debugging_handlers: bool  # exec, logs and the like
    system_logs: bool  # files below /var/log
    profiling: bool
    debug_flags: bool
    tls_min_version: TLSVersion
    tls_cipher_suites: tuple[str, ...]  # in Go's names

    def __post_init__(self) -> None:
        check_choice("--status-page", self.status_page, get_args(StatusPage))
        try:
            ip_address(self.healthz_bind_address)
        except ValueError as error:
            raise ConfigError(f"--healthz-bind-address: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """How the node comes to its certificates."""

    directory: str
    bootstrap_kubeconfig: str  # credentials to get the first client certificate with
    rotate_client: bool
    serving_by_request: bool  # serverTLSBootstrap: the cluster signs it, once somebody approves
    serving_certificate: str  # a file
    serving_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """How long the machine is held back when it goes down; without periods it is not."""

    grace_periods: tuple[GracePeriod, ...]

    @property
    def is_graceful(self) -> bool:
        """Whether the node reports a shutdown before the machine goes down."""
        return bool(self.grace_periods)


SIMULATED = "Pods that are scheduled here are simulated, none of their containers runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """What is done about pods that are bound to the node."""

    mode: PodsMode
    job_run_seconds: float  # how long the containers of a Job's pod seem to run
    usage: Mapping[Resource, str]  # what containers use whose pods do not say it; as an annotation says it
    commands: PodCommands  # whether plain commands decide how long a container runs, and what it prints
    allowed_sysctls: tuple[str, ...]  # beside those that harm nobody else
    manifest_path: str  # a file or folder that asks for static pods
    manifest_check_seconds: float  # how often it is looked at

    def __post_init__(self) -> None:
        check_choice("--pods", self.mode, get_args(PodsMode))
        check_choice("--pod-commands", self.commands, get_args(PodCommands))
        for resource, rule in self.usage.items():
            check_choice("--pod-usage", resource, get_args(Resource))
            if fault := check_usage(rule):
                raise ConfigError(f"--pod-usage {resource}: {fault}")
        if self.job_run_seconds < 0:
            raise ConfigError("--job-run-for must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """How the machine is read."""

    root: str  # where the host's root is mounted, for a process in a container
    root_dir: str  # kubelet's own; its filesystem is nodefs
    machine_id_files: tuple[str, ...]  # the first that can be read
    boot_id_files: tuple[str, ...]
    resolved_name: str  # whose addresses are looked up; "": the addresses of the nodes are set
    from_cgroup: bool  # our own cgroup's limits instead of the host's figures
    sensor_seconds: float  # how often what changes fast is read

    def __post_init__(self) -> None:
        if self.sensor_seconds <= 0:
            raise ConfigError("--sensor-interval must be greater than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConfig:
    """What exists once per process, however many nodes it hosts."""

    kubeconfig: str  # "": the service account of the pod we run in
    host: HostConfig
    serving: Serving
    certificates: Certificates


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What belongs to one node."""

    node_name: str
    node_ips: tuple[IPAddress, ...]
    node_ip_type: NodeIPType  # ExternalIP for a node that the others cannot route to
    kubelet_version: str
    kube_proxy_version: str  # empty since v1.33; older nodes report one
    kubelet_port: int  # reported in daemonEndpoints
    shares_port: bool  # with other nodes: an annotation names the path of this one's resource metrics
    container_runtime_version: str
    declared_features: tuple[str, ...]  # what the gates let the Node declare, sorted as the API server wants it
    registration: Registration
    heartbeat: Heartbeat
    resources: Resources
    eviction: Eviction
    shutdown: Shutdown
    pods: Pods

    def __post_init__(self) -> None:
        if faults := subdomain_faults(self.node_name):
            raise ConfigError(
                f'invalid node name "{self.node_name}": {", ".join(faults)}; give another with --hostname-override'
            )
        check_choice("--node-ip-type", self.node_ip_type, get_args(NodeIPType))


def simulation_fields(config: NodeConfig) -> dict[str, str] | None:
    """Return the fields of the notice SIMULATED, how to keep pods away if nothing does; None where it is not true."""
    if config.pods.mode != "simulate":
        return None
    if any(taint.effect in {"NoSchedule", "NoExecute"} for taint in config.registration.taints):
        return {}
    return {"hint": "--register-with-taints=fake-kubelet.dev/simulated=true:NoSchedule keeps them away"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the daemon is started with: a process that hosts one node."""

    process: ProcessConfig
    node: NodeConfig
