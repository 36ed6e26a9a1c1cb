"""The CSINode: without it a Node is not ready."""

from agent.core.lease import owner_reference
from agent.core.model import Object

# kubelet v1.36: csi.nodeinfomanager, the in-tree volume plugins that were moved to CSI
_MIGRATED = ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume")


def new_csinode(node_name: str, owner_uid: str) -> Object:
    """A CSINode without drivers, owned by the Node."""
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


def is_owned_by(csinode: Object, owner_uid: str) -> bool:
    """Whether the CSINode belongs to this very Node, not to an earlier one of the same name."""
    return any(owner.get("uid") == owner_uid for owner in csinode["metadata"].get("ownerReferences", []))
