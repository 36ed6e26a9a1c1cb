"""Flags → Config: kubelet's grammar at the door, checked values behind it."""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent import __version__
from agent.core.addresses import parse_node_ips
from agent.core.capacity import parse_reserved
from agent.core.config import KUBELET_VERSION, Config, Eviction, Heartbeat, Registration, Resources, Serving
from agent.core.errors import ConfigError
from agent.core.eviction import parse_thresholds
from agent.core.goduration import parse_seconds
from agent.core.labels import parse_taints

IDENTITY, HEARTBEAT, RESOURCES, EVICTION, SERVING, OURS = (
    "Registration and identity",
    "Heartbeat",
    "Resources",
    "Eviction",
    "Serving",
    "Only in fake-kubelet",
)


def _flag(group: str, metavar: str, help_text: str) -> Any:
    return field(default=None, metadata={"group": group, "metavar": metavar, "help": help_text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The table of flags; what was left out is None, so that each default has one home, in Config."""

    kubeconfig: str | None = _flag(
        IDENTITY, "FILE", "How to reach the API server, and as whom. Without it: the service account of the pod."
    )
    hostname_override: str | None = _flag(IDENTITY, "NAME", "Node name. Default: the host's name.")
    node_ip: str | None = _flag(
        IDENTITY, "IP[,IP]", "Address of the node, or one per family. Default: found as kubelet does."
    )
    node_labels: list[str] | None = _flag(IDENTITY, "K=V,...", "Labels to register the Node with.")
    register_node: bool | None = _flag(IDENTITY, "", "Create the Node if it is missing. Default: true.")
    register_with_taints: str | None = _flag(IDENTITY, "K=V:EFFECT,...", "Taints to register the Node with.")
    provider_id: str | None = _flag(IDENTITY, "ID", "Identity of the machine at its cloud provider.")
    root_dir: str | None = _flag(
        IDENTITY,
        "DIR",
        "Directory whose filesystem is the node's storage; nothing is written. Default: /var/lib/kubelet.",
    )
    node_status_update_frequency: str | None = _flag(
        HEARTBEAT, "DURATION", "How often the status is computed. Default: 10s."
    )
    max_pods: int | None = _flag(RESOURCES, "N", "Most pods the Node offers to take. Default: 110.")
    pods_per_core: int | None = _flag(RESOURCES, "N", "Most pods per CPU; 0 for no such limit.")
    kube_reserved: list[str] | None = _flag(
        RESOURCES, "K=V,...", "Held back from pods for Kubernetes: cpu, memory, ephemeral-storage."
    )
    system_reserved: list[str] | None = _flag(
        RESOURCES, "K=V,...", "Held back from pods for the system: cpu, memory, ephemeral-storage."
    )
    eviction_hard: list[str] | None = _flag(
        EVICTION, "SIGNAL<V,...", "Shortages that count as pressure, such as memory.available<100Mi."
    )
    eviction_pressure_transition_period: str | None = _flag(
        EVICTION, "DURATION", "How long pressure is told after it ended. Default: 5m."
    )
    port: int | None = _flag(SERVING, "PORT", "Port the Node tells as its kubelet's. Default: 10250.")
    healthz_port: int | None = _flag(SERVING, "PORT", "Port of /healthz; 0 for none. Default: 10248.")
    healthz_bind_address: str | None = _flag(SERVING, "IP", "Address of /healthz. Default: 127.0.0.1.")
    node_status_report_frequency: str | None = _flag(
        OURS, "DURATION", "How often an unchanged status is sent. Default: 5m."
    )
    node_lease_duration_seconds: int | None = _flag(
        OURS, "SECONDS", "Lease duration; it is renewed four times as often. Default: 40."
    )
    kubelet_version: str | None = _flag(OURS, "VERSION", "Version the Node tells as its kubelet's.")


def load(flags: Flags) -> Config:
    """The settings that the flags ask for; a ConfigError names the flag that is wrong."""
    return Config(
        node_name=_node_name(flags.hostname_override),
        node_ips=parse_node_ips(flags.node_ip or ""),
        kubelet_version=flags.kubelet_version or f"{KUBELET_VERSION}+fake-kubelet.{__version__}",
        container_runtime_version=f"fake://{__version__}",
        registration=_registration(flags),
        heartbeat=_heartbeat(flags),
        resources=_resources(flags),
        eviction=_eviction(flags),
        serving=Serving(
            **_given(port=flags.port, healthz_port=flags.healthz_port, healthz_bind_address=flags.healthz_bind_address)
        ),
        **_given(kubeconfig=flags.kubeconfig, root_dir=flags.root_dir),
    )


def parse_duration(flag: str, text: str) -> float:
    """A flag's duration in seconds; a ConfigError names the flag."""
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise ConfigError(f'invalid argument "{text}" for {flag}: {error}') from error


def _registration(flags: Flags) -> Registration:
    taints = None if flags.register_with_taints is None else parse_taints(flags.register_with_taints)
    return Registration(
        labels=_pairs(flags.node_labels),
        **_given(register_node=flags.register_node, taints=taints, provider_id=flags.provider_id),
    )


def _heartbeat(flags: Flags) -> Heartbeat:
    return Heartbeat(
        **_given(
            status_update_seconds=_seconds("--node-status-update-frequency", flags.node_status_update_frequency),
            status_report_seconds=_seconds("--node-status-report-frequency", flags.node_status_report_frequency),
            lease_duration_seconds=flags.node_lease_duration_seconds,
        )
    )


def _resources(flags: Flags) -> Resources:
    return Resources(
        kube_reserved=parse_reserved("--kube-reserved", _pairs(flags.kube_reserved)),
        system_reserved=parse_reserved("--system-reserved", _pairs(flags.system_reserved)),
        **_given(max_pods=flags.max_pods, pods_per_core=flags.pods_per_core),
    )


def _eviction(flags: Flags) -> Eviction:
    period = _seconds("--eviction-pressure-transition-period", flags.eviction_pressure_transition_period)
    return Eviction(
        hard=parse_thresholds(_pairs(flags.eviction_hard, "<", "--eviction-hard")), **_given(transition_seconds=period)
    )


def _node_name(override: str | None) -> str:
    name = (override or socket.gethostname()).strip().lower()
    if not name:
        raise ConfigError("empty hostname is invalid; give a node name with --hostname-override")
    return name


def _pairs(items: Iterable[str] | None, separator: str = "=", flag: str | None = None) -> dict[str, str]:
    """`a=1,b=2`, once or repeated; an item without the separator has no value, or is an error where a flag is named."""
    pairs = {}
    for item in ",".join(items or ()).split(","):
        key, found, value = (part.strip() for part in item.partition(separator))
        if not found and key and flag:
            raise ConfigError(f'invalid argument "{item}" for {flag}: malformed pair, expect string{separator}string')
        if key:
            pairs[key] = value
    return pairs


def _seconds(flag: str, text: str | None) -> float | None:
    return None if text is None else parse_duration(flag, text)


def _given(**values: Any) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
