"""Leases: how a node shows that it is alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.minicluster.clock import since
from agent.minicluster.errors import Fault
from agent.minicluster.kinds.columns import AGE, NAME
from agent.minicluster.resource import Column, Object, Resource, Rules
from agent.minicluster.validation import check_micro_time

if TYPE_CHECKING:
    from datetime import datetime


def _decode(lease: Object) -> None:
    spec = lease.setdefault("spec", {})
    check_micro_time(spec.get("renewTime"))
    check_micro_time(spec.get("acquireTime"))


def _validate(lease: Object) -> list[Fault]:
    spec = lease["spec"]
    faults = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = spec["leaseDurationSeconds"]
        faults.append(Fault.invalid("spec.leaseDurationSeconds", value, "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        value = spec["leaseTransitions"]
        faults.append(Fault.invalid("spec.leaseTransitions", value, "must be greater than or equal to 0"))
    return faults


def _cells(lease: Object, now: datetime) -> list[Any]:
    metadata = lease["metadata"]
    return [metadata["name"], lease["spec"].get("holderIdentity", ""), since(metadata["creationTimestamp"], now)]


LEASES = Resource(
    group="coordination.k8s.io",
    plural="leases",
    singular="lease",
    kind="Lease",
    namespaced=True,
    rules=Rules(decode=_decode, validate=_validate, create_on_update=True, unconditional_update=False),
    columns=(NAME, Column(name="Holder", description="Who holds the lease."), AGE),
    cells=_cells,
    bookmark={"spec": {}},
)
