"""Effective settings → Config."""

import socket
from collections.abc import Mapping
from typing import Any, get_args

from agent import __version__
from agent.adapters.settings.effective import Effective
from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.table import FLAGS
from agent.core.capacity import parse_reserved
from agent.core.config import (
    CapacityFrom,
    Certificates,
    Config,
    Eviction,
    Heartbeat,
    HostConfig,
    NodeConfig,
    Pods,
    ProcessConfig,
    Registration,
    Resources,
    Serving,
    Shutdown,
    check_choice,
)
from agent.core.errors import ConfigError
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.labels import Taint
from agent.core.nodestatus import parse_node_ips
from agent.core.pressure import parse_thresholds
from agent.core.quantity import Quantity, QuantityError
from agent.core.shutdown import GracePeriod, grace_periods
from agent.core.times import parse_seconds

_KUBELET_SENSOR_SECONDS = 10.0  # kubelet v1.36: eviction_manager.go, how often it looks at the host
_CLIENT_GO_QPS, _CLIENT_GO_BURST = 5, 10  # client-go: the defaults of rest/config.go

# component-helpers v0.36: nodedeclaredfeatures/features, each declared while the gate of its name is on. Left out is
# UserNamespacesHostNetworkSupport, which needs a container runtime that offers it.
_DECLARABLE_FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)


def build_config(settings: Effective) -> Config:
    """Return the settings of a process and its node. Raises ConfigError for what no kubelet would start with."""
    node = _node(settings)
    return Config(process=_process(settings, node), node=node)


def _node(settings: Effective) -> NodeConfig:
    flags, kubelet = settings.flags, settings.kubelet
    return NodeConfig(
        node_name=_node_name(flags.get("hostname-override", "")),
        node_ips=parse_node_ips(flags.get("node-ip", "")),
        node_ip_type=settings.fake["nodeIPType"],
        kubelet_version=_version(settings),
        kube_proxy_version="",
        kubelet_port=kubelet["port"],
        shares_port=False,
        container_runtime_version=f"fake://{__version__}",
        declared_features=_declared_features(kubelet),
        registration=_registration(settings),
        heartbeat=_heartbeat(kubelet),
        resources=_resources(settings),
        eviction=_eviction(settings),
        shutdown=_shutdown(kubelet),
        pods=_pods(settings),
    )


def _process(settings: Effective, node: NodeConfig) -> ProcessConfig:
    flags = settings.flags
    host = HostConfig(
        root=settings.fake["hostRoot"],
        root_dir=flags.get("root-dir", FLAGS["root-dir"].default),
        machine_id_files=_files(flags, "machine-id-file"),
        boot_id_files=_files(flags, "boot-id-file"),
        resolved_name=node.node_name if all(ip.is_unspecified for ip in node.node_ips) else "",
        from_cgroup=_from_cgroup(settings.fake["capacityFrom"]),
        sensor_seconds=parse_seconds(settings.fake["sensorInterval"]),
    )
    return ProcessConfig(
        kubeconfig=flags.get("kubeconfig", ""),
        host=host,
        serving=_serving(settings),
        certificates=_certificates(settings),
    )


def _files(flags: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(flags.get(name, FLAGS[name].default).split(","))


def _version(settings: Effective) -> str:
    flag = settings.flags.get("version", "")  # --version=v1.36.3-x sets what is reported, as in a kubelet
    reported = settings.fake["kubeletVersion"] or (flag if flag.startswith("v") else "")
    return reported or f"{KUBELET_VERSION}+fake-kubelet.{__version__}"


def _declared_features(kubelet: Mapping[str, Any]) -> tuple[str, ...]:
    gates = FeatureGates(kubelet["featureGates"])
    return tuple(name for name in _DECLARABLE_FEATURES if gates.enabled(name))


def _registration(settings: Effective) -> Registration:
    kubelet = settings.kubelet
    return Registration(
        register_node=kubelet["registerNode"],
        adopted=False,
        keeps_addresses=False,
        labels=settings.flags.get("node-labels", {}),
        taints=tuple(Taint(t["key"], t.get("value", ""), t["effect"]) for t in kubelet["registerWithTaints"]),
        provider_id=kubelet["providerID"],
        external_cloud_provider=settings.flags.get("cloud-provider") == "external",
        controller_attach_detach=kubelet["enableControllerAttachDetach"],
        on_node_deleted=settings.fake["onNodeDeleted"],
        deregister=settings.fake["deregister"],
    )


def _heartbeat(kubelet: Mapping[str, Any]) -> Heartbeat:
    return Heartbeat(
        status_update_seconds=parse_seconds(kubelet["nodeStatusUpdateFrequency"]),
        status_report_seconds=parse_seconds(kubelet["nodeStatusReportFrequency"]),
        lease_duration_seconds=kubelet["nodeLeaseDurationSeconds"],
        events_per_second=kubelet["eventRecordQPS"] or _CLIENT_GO_QPS,
        events_at_once=kubelet["eventBurst"] or _CLIENT_GO_BURST,
    )


def _resources(settings: Effective) -> Resources:
    kubelet, fake = settings.kubelet, settings.fake
    return Resources(
        max_pods=kubelet["maxPods"],
        pods_per_core=kubelet["podsPerCore"],
        kube_reserved=parse_reserved("--kube-reserved", kubelet["kubeReserved"]),
        system_reserved=parse_reserved("--system-reserved", kubelet["systemReserved"]),
        reserved_cpus=kubelet["reservedSystemCPUs"],
        local_storage=kubelet["localStorageCapacityIsolation"],
        ignore_eviction=settings.flags.get("experimental-allocatable-ignore-eviction", False),
        overrides=_quantities("--capacity", fake["capacity"]),
        extended=_quantities("--extended-resources", fake["extendedResources"]),
        allocatable={},
    )


def _eviction(settings: Effective) -> Eviction:
    kubelet = settings.kubelet
    reclaim = kubelet["evictionMinimumReclaim"]
    return Eviction(
        hard=parse_thresholds(kubelet["evictionHard"], minimum_reclaim=reclaim),
        soft=parse_thresholds(
            kubelet["evictionSoft"], minimum_reclaim=reclaim, grace_periods=kubelet["evictionSoftGracePeriod"]
        ),
        transition_seconds=parse_seconds(kubelet["evictionPressureTransitionPeriod"]),
        max_pod_grace_seconds=kubelet["evictionMaxPodGracePeriod"],
        as_kubelet=parse_seconds(settings.fake["sensorInterval"]) >= _KUBELET_SENSOR_SECONDS,
    )


def _serving(settings: Effective) -> Serving:
    kubelet = settings.kubelet
    authentication, authorization = kubelet["authentication"], kubelet["authorization"]
    return Serving(
        enabled=kubelet["enableServer"],
        address=kubelet["address"],
        port=kubelet["port"],
        read_only_port=kubelet["readOnlyPort"],
        healthz_port=kubelet["healthzPort"],
        healthz_bind_address=kubelet["healthzBindAddress"],
        status_page=settings.fake["statusPage"],
        anonymous=authentication["anonymous"]["enabled"],
        client_ca_file=authentication["x509"]["clientCAFile"],
        trusts_cluster_ca=settings.trusts_cluster_ca,
        token_reviews=authentication["webhook"]["enabled"],
        token_seconds=parse_seconds(authentication["webhook"]["cacheTTL"]),
        access_reviews=authorization["mode"] == "Webhook",
        allowed_seconds=parse_seconds(authorization["webhook"]["cacheAuthorizedTTL"]),
        denied_seconds=parse_seconds(authorization["webhook"]["cacheUnauthorizedTTL"]),
        debugging_handlers=kubelet["enableDebuggingHandlers"],
        system_logs=kubelet["enableSystemLogHandler"],
        profiling=kubelet["enableProfilingHandler"],
        debug_flags=kubelet["enableDebugFlagsHandler"],
        tls_min_version=kubelet["tlsMinVersion"],
        tls_cipher_suites=tuple(kubelet["tlsCipherSuites"]),
    )


def _certificates(settings: Effective) -> Certificates:
    kubelet = settings.kubelet
    return Certificates(
        directory=settings.flags.get("cert-dir", FLAGS["cert-dir"].default),
        bootstrap_kubeconfig=settings.flags.get("bootstrap-kubeconfig", ""),
        rotate_client=kubelet["rotateCertificates"],
        serving_by_request=kubelet["serverTLSBootstrap"],
        serving_certificate=kubelet["tlsCertFile"],
        serving_key=kubelet["tlsPrivateKeyFile"],
    )


def _shutdown(kubelet: Mapping[str, Any]) -> Shutdown:
    by_priority = kubelet["shutdownGracePeriodByPodPriority"]
    periods = grace_periods(
        parse_seconds(kubelet["shutdownGracePeriod"]),
        parse_seconds(kubelet["shutdownGracePeriodCriticalPods"]),
        [GracePeriod(entry["priority"], entry["shutdownGracePeriodSeconds"]) for entry in by_priority],
    )
    return Shutdown(grace_periods=periods)


def _pods(settings: Effective) -> Pods:
    return Pods(
        mode=settings.fake["pods"],
        job_run_seconds=parse_seconds(settings.fake["jobRunFor"]),
        usage=settings.fake["podUsage"],
        commands=settings.fake["podCommands"],
        allowed_sysctls=tuple(settings.kubelet["allowedUnsafeSysctls"]),
        manifest_path=settings.kubelet["staticPodPath"],
        manifest_check_seconds=parse_seconds(settings.kubelet["fileCheckFrequency"]),
    )


def _quantities(flag: str, pairs: Mapping[str, str]) -> dict[str, Quantity]:
    amounts = {}
    for name, text in pairs.items():
        try:
            amounts[name] = Quantity.parse(text)
        except QuantityError as error:
            raise ConfigError(f'{flag} value failed to parse: "{text}" for "{name}": {error}') from error
        if amounts[name].nano < 0:
            raise ConfigError(f'{flag} value failed to parse: "{name}" cannot be negative: {text}')
    return amounts


def _from_cgroup(word: str) -> bool:
    check_choice("--capacity-from", word, get_args(CapacityFrom))
    return word == "cgroup"


def _node_name(override: str) -> str:
    name = (override or socket.gethostname()).strip().lower()
    if not name:
        raise ConfigError("empty hostname is invalid; give a node name with --hostname-override")
    return name
