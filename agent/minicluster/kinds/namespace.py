"""Namespaces: created Active, emptied before they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.minicluster.clock import since, timestamp
from agent.minicluster.kinds.columns import AGE, NAME
from agent.minicluster.resource import STATUS_VERBS, Column, DeleteOptions, MergeKey, Object, Resource, Rules

if TYPE_CHECKING:
    from datetime import datetime

DEFAULT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
UNDELETABLE = frozenset({"default", "kube-system", "kube-public"})
_NAME_LABEL = "kubernetes.io/metadata.name"


def _decode(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {_NAME_LABEL: metadata["name"]} | (metadata.get("labels") or {})
    namespace.setdefault("spec", {})
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def _prepare_create(namespace: Object) -> None:
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _prepare_update(new: Object, old: Object) -> None:
    new["spec"], new["status"] = old["spec"], old["status"]


def _soften_delete(namespace: Object, _: DeleteOptions, now: datetime) -> Object | None:
    if not namespace["spec"].get("finalizers"):
        return None
    metadata = {"deletionTimestamp": timestamp(now)} | namespace["metadata"]
    return namespace | {"metadata": metadata, "status": {**namespace["status"], "phase": "Terminating"}}


def _cells(namespace: Object, now: datetime) -> list[Any]:
    metadata = namespace["metadata"]
    return [metadata["name"], namespace["status"]["phase"], since(metadata["creationTimestamp"], now)]


NAMESPACES = Resource(
    plural="namespaces",
    singular="namespace",
    kind="Namespace",
    namespaced=False,
    short_names=("ns",),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    subresources={"status": STATUS_VERBS},
    rules=Rules(
        decode=_decode,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        soften_delete=_soften_delete,
        returns_deleted=True,
    ),
    merge_keys={("status", "conditions"): MergeKey("type")},
    field_labels={"status.phase": lambda namespace: str(namespace["status"]["phase"])},
    generic_field_labels=False,
    columns=(NAME, Column(name="Status", description="Active, or Terminating."), AGE),
    cells=_cells,
    bookmark={"spec": {}, "status": {}},
)
