"""The Node to register, and what registration mends on one that is already there."""

from agent.core.facts import Facts
from agent.core.model import Object
from agent.core.patch import node_patch
from agent.core.status import Desired, desired_status

_ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"

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


def new_node(facts: Facts) -> tuple[Object, Desired]:
    """The Node as it is created, its status filled already."""
    registration, desired = facts.config.registration, desired_status(facts)
    spec: Object = {}
    if registration.taints:
        spec["taints"] = [taint.as_object() for taint in registration.taints]
    if registration.provider_id:
        spec["providerID"] = registration.provider_id
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": facts.config.node_name,
            "labels": _labels(facts),
            "annotations": {_ATTACH_DETACH: "true"},
        },
        "spec": spec,
        "status": desired.status,
    }
    return node, desired


def reconcile_patch(existing: Object, fresh: Object) -> Object:
    """What registration changes on a Node that is already there; empty when nothing."""
    metadata = existing["metadata"]
    wanted = {key: value for key, value in fresh["metadata"]["labels"].items() if key in _DEFAULT_LABELS}
    labels = {**metadata.get("labels", {}), **wanted}
    labels = {key: value for key, value in labels.items() if value or key not in _DEFAULT_LABELS}
    annotations = {**metadata.get("annotations", {}), **fresh["metadata"]["annotations"]}
    status = existing.get("status", {})
    return node_patch(
        {"metadata": metadata, "status": status},
        {"metadata": {"labels": labels, "annotations": annotations}, "status": status},
    )


def with_own_labels(node: Object, facts: Facts) -> Object:
    """The Node with the two labels that a kubelet repairs at run time."""
    own = {key: value for key, value in _labels(facts).items() if key in {"kubernetes.io/os", "kubernetes.io/arch"}}
    return {**node, "metadata": {**node["metadata"], "labels": {**node["metadata"].get("labels", {}), **own}}}


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
