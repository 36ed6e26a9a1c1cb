"""The Node and the CSINode to register, and what registration mends on a Node that exists."""

from agent.core.labels import Taint
from agent.core.model import (
    CSINodeObject,
    LeaseObject,
    NodeObject,
    NodeSpec,
    NodeStatus,
    Object,
    ObjectMeta,
    OwnerReference,
)
from agent.core.nodestatus import Desired, Facts, FieldError, desired_status, provided_node_ip
from agent.core.patch import node_patch
from agent.core.routing import path_of_node

_ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"
_PROVIDED_NODE_IP = "alpha.kubernetes.io/provided-node-ip"
_METRICS_PATH = (
    "metrics.k8s.io/resource-metrics-path"  # metrics-server v0.7: where a node has its own, not /metrics/resource
)
_UNINITIALIZED = Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule")
OWN_ADDRESSES = "fake-kubelet.dev/own-addresses"
"""The annotation of an adopted Node whose addresses are ours, so that another process may set its own."""

# kubelet v1.36: updateDefaultLabels; all other labels are left alone on a Node that exists
_DEFAULT_LABELS = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "node.kubernetes.io/windows-build",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
)

# kubelet v1.36: csi.nodeinfomanager, the in-tree volume plugins that were moved to CSI
_MIGRATED = ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume")


def new_node(facts: Facts) -> tuple[NodeObject, Desired]:
    """Return the Node to create, with its status."""
    registration, desired = facts.config.registration, desired_status(facts)
    taints = [*registration.taints, *([_UNINITIALIZED] if registration.external_cloud_provider else [])]
    spec: NodeSpec = {"taints": [taint.as_object() for taint in taints]} if taints else {}
    if registration.provider_id:
        spec["providerID"] = registration.provider_id
    node: NodeObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _new_metadata(facts),
        "spec": spec,
        "status": desired.status,
    }
    return node, desired


def _new_metadata(facts: Facts) -> ObjectMeta:
    metadata: ObjectMeta = {
        "name": facts.config.node_name,
        "labels": _labels(facts),
        "annotations": {_ATTACH_DETACH: "true"} if facts.config.registration.controller_attach_detach else {},
    }
    return _own_metadata(metadata, facts)


def reconcile_patch(existing: NodeObject, fresh: NodeObject) -> Object:
    """Return what registration changes on a Node that exists; empty when nothing."""
    observed, wanted_status = existing.get("status", {}), fresh["status"]
    status: NodeStatus = {
        **observed,
        "capacity": _reconciled(observed.get("capacity"), wanted_status.get("capacity", {})),
        "allocatable": _reconciled(observed.get("allocatable"), wanted_status.get("allocatable", {})),
    }
    metadata = _reconciled_metadata(existing["metadata"], fresh["metadata"])
    return node_patch(existing, {"metadata": metadata, "status": status})


def _reconciled_metadata(existing: ObjectMeta, fresh: ObjectMeta) -> ObjectMeta:
    wanted = {key: value for key, value in fresh["labels"].items() if key in _DEFAULT_LABELS}
    labels = {**existing.get("labels", {}), **wanted}
    labels = {key: value for key, value in labels.items() if value or key not in _DEFAULT_LABELS}
    annotations = {key: value for key, value in existing.get("annotations", {}).items() if key != _ATTACH_DETACH}
    if _ATTACH_DETACH in fresh["annotations"]:
        annotations[_ATTACH_DETACH] = "true"
    return {**existing, "labels": labels, "annotations": annotations}


def _reconciled(observed: dict[str, str] | None, fresh: dict[str, str]) -> dict[str, str]:
    """Capacity or allocatable of a Node that exists; what others put there stays, but for huge pages."""
    # kubelet v1.36 sets extended resources to 0 where it finds no checkpoint of its device manager, but takes that
    # one's socket for a checkpoint, too: a race, which the socket mostly wins. So they stay.
    if not observed:
        return dict(fresh)
    kept = {name: text for name, text in observed.items() if not _is_hugepages(name)}
    return kept | {name: text for name, text in fresh.items() if _is_hugepages(name)}


def _is_hugepages(name: str) -> bool:
    return name.startswith("hugepages-")


def with_registered_metadata(node: NodeObject, facts: Facts) -> NodeObject:
    """Return the Node with all that registration mends in the metadata of one that exists."""
    return {**node, "metadata": _reconciled_metadata(node["metadata"], _new_metadata(facts))}


def with_own_metadata(node: NodeObject, facts: Facts) -> NodeObject:
    """Return the Node with the labels and annotations that a kubelet keeps up at run time; those of creators stay."""
    metadata = _own_metadata(node["metadata"], facts)
    registration = facts.config.registration
    if registration.adopted:
        own_addresses = {} if registration.keeps_addresses else {OWN_ADDRESSES: "true"}
        return {**node, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **own_addresses}}}
    own = {key: value for key, value in _labels(facts).items() if key in {"kubernetes.io/os", "kubernetes.io/arch"}}
    return {**node, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **own}}}


def _own_metadata(metadata: ObjectMeta, facts: Facts) -> ObjectMeta:
    if facts.config.shares_port:
        path = {_METRICS_PATH: f"{path_of_node(facts.config.node_name)}/metrics/resource"}
        metadata = {**metadata, "annotations": {**path, **metadata.get("annotations", {})}}
    try:
        provided = provided_node_ip(facts)
    except FieldError:
        return metadata  # kubelet v1.36: NodeAddress ends before it would set or remove the annotation
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != _PROVIDED_NODE_IP}
    if provided:
        annotations[_PROVIDED_NODE_IP] = provided
    return {**metadata, "annotations": annotations}


def _labels(facts: Facts) -> dict[str, str]:
    arch = facts.host.architecture
    return {
        "kubernetes.io/hostname": facts.config.node_name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": arch,
        **facts.config.registration.labels,
    }


def new_csinode(node_name: str, owner_uid: str) -> CSINodeObject:
    """Return a CSINode without drivers, owned by the Node: without it a Node is not ready."""
    migrated = ",".join(f"kubernetes.io/{plugin}" for plugin in _MIGRATED)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": node_name,
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated},
            "ownerReferences": [owner_reference(node_name, owner_uid)],
        },
        "spec": {"drivers": None},
    }


def is_owned_by(obj: CSINodeObject | LeaseObject, owner_uid: str) -> bool:
    """Return whether the CSINode belongs to this very Node, not to an earlier one of the same name."""
    return any(owner.get("uid") == owner_uid for owner in obj["metadata"].get("ownerReferences", []))


def owner_reference(node_name: str, uid: str) -> OwnerReference:
    """Return how the Node is named as the owner of its Lease and CSINode."""
    return {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": uid}
