"""The Lease of a node: a new one, and a renewed one."""

from datetime import datetime, timedelta

from agent.core.model import LeaseObject
from agent.core.node import owner_reference
from agent.core.times import exact_time, micro_timestamp

LEASE_NAMESPACE = "kube-node-lease"


def new_lease(node_name: str, *, duration_seconds: int, owner_uid: str, now: datetime) -> LeaseObject:
    """Return the lease that a node creates; the garbage collector removes it with the Node."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node_name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner_reference(node_name, owner_uid)],
        },
        "spec": {
            "holderIdentity": node_name,
            "leaseDurationSeconds": duration_seconds,
            "renewTime": micro_timestamp(now),
        },
    }


def renewed(lease: LeaseObject, *, duration_seconds: int, now: datetime) -> LeaseObject:
    """Return the lease with a later time; holder and owner stay as they are."""
    before = lease.get("spec", {})
    renew_time = _later(before.get("renewTime"), now)
    return {**lease, "spec": {**before, "leaseDurationSeconds": duration_seconds, "renewTime": renew_time}}


def _later(before: object, now: datetime) -> str:
    """Return now, or just after the last renewal where the clock has gone back since.

    Better than kubelet: the control plane counts a renewal only if its time is later than that of the one before.
    """
    text = micro_timestamp(now)
    if not isinstance(before, str) or (len(before) == len(text) and before.endswith("Z") and before < text):
        return text  # times of one form sort as texts, and whatever else the server has there counts for nothing
    try:
        return micro_timestamp(max(now, exact_time(before) + timedelta(microseconds=1)))
    except (ValueError, OverflowError):
        return text


def owned(lease: LeaseObject, node_name: str, owner_uid: str) -> LeaseObject:
    """Return the lease, owned by the Node."""
    return {**lease, "metadata": {**lease["metadata"], "ownerReferences": [owner_reference(node_name, owner_uid)]}}
