"""A new lease, a renewed lease."""

from datetime import datetime, timedelta

from agent.core.model import Object
from agent.core.times import exact_time, micro_timestamp

NAMESPACE = "kube-node-lease"


def new_lease(node_name: str, *, duration_seconds: int, owner_uid: str, now: datetime) -> Object:
    """The lease a node starts with; it goes when its Node goes."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node_name,
            "namespace": NAMESPACE,
            "ownerReferences": [owner_reference(node_name, owner_uid)],
        },
        "spec": {
            "holderIdentity": node_name,
            "leaseDurationSeconds": duration_seconds,
            "renewTime": micro_timestamp(now),
        },
    }


def renewed(lease: Object, *, duration_seconds: int, now: datetime) -> Object:
    """The same lease with a later time; holder and owner stay as they are."""
    before = lease.get("spec", {})
    at = _later(before.get("renewTime"), now)
    return {**lease, "spec": {**before, "leaseDurationSeconds": duration_seconds, "renewTime": micro_timestamp(at)}}


def _later(before: str | None, now: datetime) -> datetime:
    """Now, or just after the last renewal where the clock has gone back since.

    Better than kubelet: the control plane counts a renewal only if its time is later than that of the one before.
    """
    try:
        return max(now, exact_time(before or "") + timedelta(microseconds=1))
    except (ValueError, OverflowError):  # whatever the server has there
        return now


def owned(lease: Object, node_name: str, owner_uid: str) -> Object:
    """The same lease, owned by the Node."""
    return {**lease, "metadata": {**lease["metadata"], "ownerReferences": [owner_reference(node_name, owner_uid)]}}


def owner_reference(node_name: str, uid: str) -> Object:
    """How the Node is named as the owner of its Lease and CSINode."""
    return {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": uid}
