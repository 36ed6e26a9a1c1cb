"""All resources that the embedded cluster serves; those with a short strategy are defined here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.core.model import Object
from agent.core.times import timestamp
from agent.minicluster.csr_strategy import ADMIN, SIGNING_REQUESTS
from agent.minicluster.event_strategy import EVENTS, NEW_EVENTS
from agent.minicluster.node_strategy import NODES
from agent.minicluster.objects import check_micro_time
from agent.minicluster.pod_strategy import PODS
from agent.minicluster.resource_metrics import METRICS
from agent.minicluster.status_errors import StatusCause
from agent.minicluster.strategy import (
    AGE,
    NAME,
    STATUS_VERBS,
    Column,
    DeleteOptions,
    MergeKey,
    Resource,
    Strategy,
    human_age,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

DEFAULT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
UNDELETABLE = frozenset({"default", "kube-system", "kube-public"})
_NAME_LABEL = "kubernetes.io/metadata.name"


def _decode_namespace(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {_NAME_LABEL: metadata["name"]} | (metadata.get("labels") or {})
    namespace.setdefault("spec", {})
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def _prepare_namespace(namespace: Object) -> None:
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _prepare_namespace_update(new: Object, old: Object) -> None:
    new["spec"], new["status"] = old["spec"], old["status"]


def _terminate_namespace(namespace: Object, _: DeleteOptions, now: datetime) -> Object | None:
    if not namespace["spec"].get("finalizers"):
        return None
    metadata = {"deletionTimestamp": timestamp(now)} | namespace["metadata"]
    return namespace | {"metadata": metadata, "status": {**namespace["status"], "phase": "Terminating"}}


def _namespace_cells(namespace: Object, now: datetime) -> list[Any]:
    metadata = namespace["metadata"]
    return [metadata["name"], namespace["status"]["phase"], human_age(metadata["creationTimestamp"], now)]


NAMESPACES = Resource(
    plural="namespaces",
    singular="namespace",
    kind="Namespace",
    namespaced=False,
    short_names=("ns",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    subresources={"status": STATUS_VERBS},
    strategy=Strategy(
        decode=_decode_namespace,
        prepare_create=_prepare_namespace,
        prepare_update=_prepare_namespace_update,
        graceful_delete=_terminate_namespace,
        returns_deleted=True,
    ),
    merge_keys={("status", "conditions"): MergeKey("type")},
    field_labels={"status.phase": lambda namespace: str(namespace["status"]["phase"])},
    generic_field_labels=False,
    columns=(NAME, Column(name="Status", description="Active, or Terminating."), AGE),
    cells=_namespace_cells,
    bookmark={"spec": {}, "status": {}},
)


def _decode_lease(lease: Object) -> None:
    spec = lease.setdefault("spec", {})
    check_micro_time(spec.get("renewTime"))
    check_micro_time(spec.get("acquireTime"))


def _validate_lease(lease: Object) -> list[StatusCause]:
    spec = lease["spec"]
    causes = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = spec["leaseDurationSeconds"]
        causes.append(StatusCause.invalid("spec.leaseDurationSeconds", value, "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        value = spec["leaseTransitions"]
        causes.append(StatusCause.invalid("spec.leaseTransitions", value, "must be greater than or equal to 0"))
    return causes


def _lease_cells(lease: Object, now: datetime) -> list[Any]:
    metadata = lease["metadata"]
    return [metadata["name"], lease["spec"].get("holderIdentity", ""), human_age(metadata["creationTimestamp"], now)]


LEASES = Resource(
    group="coordination.k8s.io",
    plural="leases",
    singular="lease",
    kind="Lease",
    namespaced=True,
    strategy=Strategy(
        decode=_decode_lease, validate=_validate_lease, create_on_update=True, unconditional_update=False
    ),
    columns=(NAME, Column(name="Holder", description="Who holds the lease."), AGE),
    cells=_lease_cells,
    bookmark={"spec": {}},
)


def _decode_csinode(csinode: Object) -> None:
    csinode.setdefault("spec", {}).setdefault("drivers", None)  # upstream writes the null


def _validate_csinode(csinode: Object) -> list[StatusCause]:
    return [
        StatusCause.required(f"spec.drivers[{index}].{field}")
        for index, driver in enumerate(csinode["spec"]["drivers"] or [])
        for field in ("name", "nodeID")
        if not driver.get(field)
    ]


def _csinode_cells(csinode: Object, now: datetime) -> list[Any]:
    metadata = csinode["metadata"]
    return [metadata["name"], len(csinode["spec"]["drivers"] or []), human_age(metadata["creationTimestamp"], now)]


CSINODES = Resource(
    group="storage.k8s.io",
    plural="csinodes",
    singular="csinode",
    kind="CSINode",
    namespaced=False,
    strategy=Strategy(decode=_decode_csinode, validate=_validate_csinode, unconditional_update=False),
    merge_keys={("spec", "drivers"): MergeKey("name")},
    columns=(NAME, Column(name="Drivers", type="integer", description="How many storage drivers are registered."), AGE),
    cells=_csinode_cells,
    bookmark={"spec": {"drivers": None}},
)


def _allowed(_: Object) -> Object:
    """Allow everything: the cluster has one user."""
    return {"allowed": True, "reason": "the embedded cluster allows everything"}


def _unauthenticated(_: Object) -> Object:
    return {"user": {}, "error": "unknown token"}


def _whoami(_: Object) -> Object:
    return {"userInfo": ADMIN}


def _review(group: str, kind: str, status: Callable[[Object], Object], *, namespaced: bool = False) -> Resource:
    return Resource(
        group=group,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
        kind=kind,
        namespaced=namespaced,
        verbs=("create",),
        answer=lambda review: review | {"status": status(review)},
    )


TOKEN_REVIEWS = _review("authentication.k8s.io", "TokenReview", _unauthenticated)
REVIEWS = (
    TOKEN_REVIEWS,
    _review("authentication.k8s.io", "SelfSubjectReview", _whoami),
    _review("authorization.k8s.io", "SubjectAccessReview", _allowed),
    _review("authorization.k8s.io", "SelfSubjectAccessReview", _allowed),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", _allowed, namespaced=True),
)


BINDINGS = Resource(plural="bindings", singular="binding", kind="Binding", namespaced=True, verbs=("create",))

# In the order in which discovery lists them.
RESOURCES = (
    NAMESPACES,
    NODES,
    PODS,
    EVENTS,
    NEW_EVENTS,
    LEASES,
    CSINODES,
    SIGNING_REQUESTS,
    *REVIEWS,
    BINDINGS,
    *METRICS,  # last: kubectl takes the first resource of a name, and nodes are not NodeMetrics
)
