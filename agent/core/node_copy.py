"""A copy of a Node of another cluster: the settings and the machine by which a node of a fleet looks the same."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Required, TypedDict

from agent.core.config import NodeConfig, Resources
from agent.core.fleet import REGION_LABEL, ZONE_LABEL, NodeModel
from agent.core.labels import Taint
from agent.core.machine import machine_of
from agent.core.model import HostSnapshot, NodeTaint
from agent.core.quantity import Quantity, parse_amounts

HOSTNAME_LABEL = "kubernetes.io/hostname"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
_BETA_ZONE, _BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_PLACE_LABELS = (ZONE_LABEL, REGION_LABEL, _BETA_ZONE, _BETA_REGION)

# What controllers write about the state of a node, and take away from one that is well.
_TAINTS_OF_CONTROLLERS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)


class SourceMetadata(TypedDict, total=False):
    """What of the metadata of a Node is copied."""

    name: Required[str]
    labels: dict[str, str]


class SourceSpec(TypedDict, total=False):
    """What of the spec of a Node is copied."""

    providerID: str
    taints: list[NodeTaint]


class SourceSwap(TypedDict, total=False):
    """The swap of a machine."""

    capacity: int


class SourceInfo(TypedDict, total=False):
    """The nodeInfo of a Node."""

    machineID: str
    systemUUID: str
    bootID: str
    kernelVersion: str
    osImage: str
    containerRuntimeVersion: str
    kubeletVersion: str
    kubeProxyVersion: str
    operatingSystem: str
    architecture: str
    swap: SourceSwap


class SourceStatus(TypedDict, total=False):
    """What of the status of a Node is copied."""

    capacity: dict[str, str]
    allocatable: dict[str, str]
    declaredFeatures: list[str]
    nodeInfo: SourceInfo


class SourceNode(TypedDict, total=False):
    """A Node, without what is not copied."""

    metadata: Required[SourceMetadata]
    spec: SourceSpec
    status: SourceStatus


def copied_node(node: SourceNode, base: NodeConfig, *, keep_provider_id: bool, keep_zone: bool) -> NodeModel:
    """Return the model of a Node: its labels, taints, capacity, allocatable and nodeInfo; the rest is as in `base`.

    Resources, labels and taints of `base` win. Raises ValueError for a name, quantity or label that cannot be one.
    """
    spec, status, registration = node.get("spec", {}), node.get("status", {}), base.registration
    info = status.get("nodeInfo", {})
    capacity = parse_amounts(status.get("capacity", {}))
    config = replace(
        base,
        node_name=node["metadata"]["name"],
        kubelet_version=info.get("kubeletVersion") or base.kubelet_version,
        kube_proxy_version=info.get("kubeProxyVersion", ""),
        container_runtime_version=info.get("containerRuntimeVersion") or base.container_runtime_version,
        declared_features=tuple(status.get("declaredFeatures", ())),
        resources=_resources(base.resources, capacity, parse_amounts(status.get("allocatable", {})) or capacity),
        registration=replace(
            registration,
            labels={**_labels(node["metadata"].get("labels", {}), keep_zone=keep_zone), **registration.labels},
            taints=merged_taints(_taints(spec.get("taints", ())), registration.taints),
            provider_id=spec.get("providerID", "") if keep_provider_id else "",
        ),
    )
    return NodeModel(config=config, machine=_machine({**capacity, **base.resources.overrides}, info))


def merged_taints(first: Iterable[Taint], second: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the taints of both; of two with the same key and effect, which a Node cannot have, the second."""
    return tuple({(taint.key, taint.effect): taint for taint in (*first, *second)}.values())


def _labels(labels: Mapping[str, str], *, keep_zone: bool) -> dict[str, str]:
    dropped = (HOSTNAME_LABEL,) if keep_zone else (HOSTNAME_LABEL, *_PLACE_LABELS)
    return {key: value for key, value in labels.items() if key not in dropped}


def _taints(taints: Iterable[NodeTaint]) -> tuple[Taint, ...]:
    return tuple(
        Taint(taint["key"], taint.get("value", ""), taint["effect"])
        for taint in taints
        if taint["key"] not in _TAINTS_OF_CONTROLLERS
    )


def _resources(base: Resources, capacity: Mapping[str, Quantity], allocatable: Mapping[str, Quantity]) -> Resources:
    return replace(
        base,
        overrides={**capacity, **base.overrides},
        allocatable={**allocatable, **base.overrides, **base.extended},
        local_storage="ephemeral-storage" in capacity,
    )


def _machine(capacity: Mapping[str, Quantity], info: SourceInfo) -> HostSnapshot:
    machine = machine_of(
        capacity,
        architecture=info.get("architecture", "amd64"),
        operating_system=info.get("operatingSystem", "linux"),
        kernel_version=info.get("kernelVersion", ""),
        os_image=info.get("osImage", ""),
    )
    return replace(
        machine,
        swap_bytes=info.get("swap", {}).get("capacity", 0),
        machine_id=info.get("machineID", ""),
        system_uuid=info.get("systemUUID", ""),
        boot_id=info.get("bootID", ""),
    )
