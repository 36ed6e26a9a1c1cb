"""CSINodes: the storage drivers of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.minicluster.clock import since
from agent.minicluster.errors import Fault
from agent.minicluster.kinds.columns import AGE, NAME
from agent.minicluster.resource import Column, MergeKey, Object, Resource, Rules

if TYPE_CHECKING:
    from datetime import datetime


def _decode(csinode: Object) -> None:
    csinode.setdefault("spec", {}).setdefault("drivers", None)  # upstream writes the null


def _validate(csinode: Object) -> list[Fault]:
    return [
        Fault.required(f"spec.drivers[{index}].{field}")
        for index, driver in enumerate(csinode["spec"]["drivers"] or [])
        for field in ("name", "nodeID")
        if not driver.get(field)
    ]


def _cells(csinode: Object, now: datetime) -> list[Any]:
    metadata = csinode["metadata"]
    return [metadata["name"], len(csinode["spec"]["drivers"] or []), since(metadata["creationTimestamp"], now)]


CSINODES = Resource(
    group="storage.k8s.io",
    plural="csinodes",
    singular="csinode",
    kind="CSINode",
    namespaced=False,
    rules=Rules(decode=_decode, validate=_validate, unconditional_update=False),
    merge_keys={("spec", "drivers"): MergeKey("name")},
    columns=(NAME, Column(name="Drivers", type="integer", description="How many storage drivers are registered."), AGE),
    cells=_cells,
    bookmark={"spec": {"drivers": None}},
)
