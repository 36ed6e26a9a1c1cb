"""Nodes: what the API server defaults, checks and prints."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agent.core.model import Object
from agent.minicluster.objects import (
    check_quantities,
    check_time,
    validate_label_value,
    validate_qualified_name,
    without_empty,
)
from agent.minicluster.status_errors import StatusCause
from agent.minicluster.strategy import AGE, NAME, STATUS_VERBS, Column, MergeKey, Resource, Strategy, human_age

if TYPE_CHECKING:
    from datetime import datetime

NOT_READY = "node.kubernetes.io/not-ready"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ROLE_PREFIX = "node-role.kubernetes.io/"
_INTEGER_RESOURCES = {"pods"}
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _empty_status() -> Object:
    return {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": dict.fromkeys(_NODE_INFO, "")}


def _decode(node: Object) -> None:
    spec = node.setdefault("spec", {})
    status = node["status"] = _empty_status() | node.get("status", {})
    status["nodeInfo"] = dict.fromkeys(_NODE_INFO, "") | status["nodeInfo"]
    without_empty(spec, "taints", "podCIDRs", "podCIDR", "providerID", "unschedulable")
    without_empty(status, "addresses", "conditions", "images", "declaredFeatures", "volumesInUse", "volumesAttached")
    check_quantities(status.get("capacity"))
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    check_quantities(status.get("allocatable"))
    for condition in status.get("conditions", []):
        check_time(condition.get("lastHeartbeatTime"))
        check_time(condition.get("lastTransitionTime"))


def _prepare_create(node: Object) -> None:
    """What the TaintNodesByCondition admission plugin does."""
    taints = node["spec"].setdefault("taints", [])
    if not any(taint["key"] == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": NOT_READY, "effect": "NoSchedule"})


def _validate(node: Object) -> list[StatusCause]:
    status = node["status"]
    causes = _validate_taints(node["spec"].get("taints", []))
    for part in ("capacity", "allocatable"):
        for name, value in (status.get(part) or {}).items():
            causes += _validate_amount(f"status.{part}.{name}", name, str(value))
    return causes + _validate_features(status.get("declaredFeatures", []))


def _validate_amount(field: str, name: str, value: str) -> list[StatusCause]:
    if value.startswith("-"):
        return [StatusCause.invalid(field, value, "must be greater than or equal to 0")]
    if name in _INTEGER_RESOURCES and ("." in value or value.endswith("m")):
        return [StatusCause.invalid(field, value, "must be an integer")]
    return []


def _validate_features(features: list[str]) -> list[StatusCause]:
    causes = []
    for index, (feature, following) in enumerate(pairwise(features), start=1):
        field = f"status.declaredFeatures[{index}]"
        if feature == following:
            causes.append(StatusCause.duplicate(field, following))
        elif feature > following:
            causes.append(StatusCause.invalid(field, following, "list must be sorted alphabetically"))
    return causes


def _validate_taints(taints: list[Object]) -> list[StatusCause]:
    causes: list[StatusCause] = []
    seen = set()
    for index, taint in enumerate(taints):
        field = f"metadata.taints[{index}]"  # upstream reports them under metadata, not spec
        causes += validate_qualified_name(f"{field}.key", taint.get("key", ""))
        causes += validate_label_value(f"{field}.value", taint.get("value", ""))
        effect = taint.get("effect", "")
        if not effect:
            causes.append(StatusCause.required(f"{field}.effect"))
        elif effect not in _EFFECTS:
            causes.append(StatusCause.unsupported(f"{field}.effect", effect, _EFFECTS))
        if (taint.get("key"), effect) in seen:
            causes.append(
                StatusCause.duplicate(field, _go_taint(taint), "taints must be unique by key and effect pair")
            )
        seen.add((taint.get("key"), effect))
    return causes


def _go_taint(taint: Object) -> Object:
    fields = {"Key": taint.get("key", ""), "Value": taint.get("value", ""), "Effect": taint.get("effect", "")}
    return fields | {"TimeAdded": taint.get("timeAdded")}


def _validate_update(new: Object, old: Object) -> list[StatusCause]:
    causes = []
    seen = set()
    for index, address in enumerate(new["status"].get("addresses", [])):
        key = (address.get("type", ""), address.get("address", ""))
        if key in seen:
            field = f"status.addresses[{index}]"
            causes.append(StatusCause.duplicate(field, {"Type": key[0], "Address": key[1]}))
        seen.add(key)
    was, now = old["spec"], new["spec"]
    for field, word in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if was.get(field) and was[field] != now.get(field):
            causes.append(
                StatusCause.forbidden(f"spec.{field}", f'node updates may not change {word} except from "" to valid')
            )
    return causes


def _cells(node: Object, now: datetime) -> list[Any]:
    info, labels = node["status"]["nodeInfo"], node["metadata"].get("labels", {})
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles |= {labels.get("kubernetes.io/role", "")}
    kernel = info["kernelVersion"] or "<unknown>"
    return [
        node["metadata"]["name"],
        _readiness(node),
        ",".join(sorted(roles - {""})) or "<none>",
        human_age(node["metadata"]["creationTimestamp"], now),
        info["kubeletVersion"],
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info["osImage"] or "<unknown>",
        f"{kernel} ({info['architecture']})" if info["architecture"] else kernel,
        info["containerRuntimeVersion"] or "<unknown>",
    ]


def _readiness(node: Object) -> str:
    ready = [entry.get("status") for entry in node["status"].get("conditions", []) if entry.get("type") == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[-1] == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node["spec"].get("unschedulable") else word


def _address(node: Object, kind: str) -> str:
    addresses = (entry["address"] for entry in node["status"].get("addresses", []) if entry.get("type") == kind)
    return next(addresses, "<none>")


NODES = Resource(
    plural="nodes",
    singular="node",
    kind="Node",
    namespaced=False,
    short_names=("no",),
    subresources={"status": STATUS_VERBS, "proxy": ("create", "delete", "get", "patch", "update")},
    strategy=Strategy(
        decode=_decode, prepare_create=_prepare_create, validate=_validate, validate_update=_validate_update
    ),
    merge_keys={
        ("status", "conditions"): MergeKey("type"),
        ("status", "addresses"): MergeKey("type"),
        ("spec", "podCIDRs"): MergeKey(),
    },
    field_labels={"spec.unschedulable": lambda node: str(bool(node["spec"].get("unschedulable"))).lower()},
    generic_field_labels=False,
    columns=(
        NAME,
        Column(name="Status", description="Whether the node is ready, and whether it takes new pods."),
        Column(name="Roles", description="The node's roles, from its labels."),
        AGE,
        Column(name="Version", description="The version its kubelet reports."),
        Column(name="Internal-IP", priority=1, description="The first address of type InternalIP."),
        Column(name="External-IP", priority=1, description="The first address of type ExternalIP."),
        Column(name="OS-Image", priority=1, description="The operating system its kubelet reports."),
        Column(name="Kernel-Version", priority=1, description="The kernel its kubelet reports."),
        Column(name="Container-Runtime", priority=1, description="The container runtime its kubelet reports."),
    ),
    cells=_cells,
    bookmark={"spec": {}, "status": _empty_status()},
)
