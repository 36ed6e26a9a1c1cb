"""Pods: defaults, quality of service, and a deletion that waits for the node."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from agent.core.model import Object, PodObject
from agent.core.pods.resources import request_of
from agent.core.times import parse_time, timestamp
from agent.minicluster import status_errors
from agent.minicluster.objects import check_quantities, validate_subdomain
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
    from datetime import datetime

    from agent.minicluster.object_store import ObjectStore

DEFAULT_SCHEDULER = "default-scheduler"
_SPEC_DEFAULTS: Object = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "schedulerName": DEFAULT_SCHEDULER,
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER_DEFAULTS: Object = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_CHANGEABLE = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}
_TERMINAL = {"Succeeded", "Failed"}
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _decode(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    for field, value in _SPEC_DEFAULTS.items():
        spec.setdefault(field, value)
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        for field, value in _CONTAINER_DEFAULTS.items():
            container.setdefault(field, value)
        tag = container.get("image", "").rpartition("/")[2].partition(":")[2]
        container.setdefault("imagePullPolicy", "Always" if tag in {"", "latest"} else "IfNotPresent")
        _decode_resources(container["resources"])
    _decode_resources(spec.get("resources") or {})
    check_quantities(spec.get("overhead"))
    if spec.get("containers"):
        request_of(cast("PodObject", pod))  # what the scheduler reads must be there in the right types
    status = pod.setdefault("status", {})
    for condition in status.get("conditions") or []:
        condition.setdefault("lastProbeTime", None)  # upstream writes the null


def _decode_resources(resources: Object) -> None:
    """Write quantities in their canonical form; a limit is a request where there is no other one."""
    for kind in ("limits", "requests"):
        check_quantities(resources.get(kind))
    if resources.get("limits"):
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})


def _prepare_create(pod: Object) -> None:
    pod["metadata"]["generation"] = 1
    pod["spec"]["priority"] = _priority(pod)
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(pod["spec"])}
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            wait = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations.append(wait)


def _priority(pod: Object) -> int:
    """Return the priority of the pod's class: the two classes of the system are the only ones here."""
    name: str = pod["spec"].get("priorityClassName", "")
    if name and name not in _PRIORITIES:
        raise status_errors.forbidden(PODS, pod["metadata"]["name"], f"no PriorityClass with name {name} was found")
    return _PRIORITIES.get(name) or int(pod["spec"].get("priority", 0))


def _tolerates(toleration: Object, key: str) -> bool:
    return (toleration.get("key", key), toleration.get("effect", "NoExecute")) == (key, "NoExecute")


def _qos_class(spec: Object) -> str:
    containers = [*spec.get("containers", []), *spec.get("initContainers", [])]
    amounts = [(c["resources"].get("requests") or {}, c["resources"].get("limits") or {}) for c in containers]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    for requests, limits in amounts:
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _prepare_update(new: Object, old: Object) -> None:
    new["status"] = old["status"]
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _prepare_status(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]
    new["status"].setdefault("qosClass", old["status"].get("qosClass"))
    new["metadata"].pop("ownerReferences", None)
    if "ownerReferences" in old["metadata"]:
        new["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]


def _validate(pod: Object) -> list[StatusCause]:
    spec = pod["spec"]
    if not spec.get("containers"):
        return [StatusCause.required("spec.containers")]
    causes = validate_subdomain("spec.nodeName", spec["nodeName"]) if spec.get("nodeName") else []
    for index, container in enumerate(spec["containers"]):
        causes += [
            StatusCause.required(f"spec.containers[{index}].{f}") for f in ("name", "image") if not container.get(f)
        ]
    return causes


def _validate_update(new: Object, old: Object) -> list[StatusCause]:
    if _frozen(new["spec"]) == _frozen(old["spec"]):
        return []
    allowed = (
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
        "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
        "was previously negative)"
    )
    return [StatusCause.forbidden("spec", f"pod updates may not change fields other than {allowed}")]


def _frozen(spec: Object) -> Object:
    """The part of a pod's spec that no update may touch."""
    frozen = {field: value for field, value in spec.items() if field not in _CHANGEABLE}
    for field in ("containers", "initContainers"):
        frozen[field] = [container | {"image": ""} for container in spec.get(field, [])]
    return frozen


def _graceful_delete(pod: Object, options: DeleteOptions, now: datetime) -> Object | None:
    """Keep a pod that a node may be running until its kubelet deletes it with a grace period of 0."""
    metadata, grace = pod["metadata"], options.grace_period_seconds
    asked = pod["spec"]["terminationGracePeriodSeconds"] if grace is None else 1 if grace < 0 else grace
    if not pod["spec"].get("nodeName") or pod["status"]["phase"] in _TERMINAL:
        asked = 0
    if "deletionTimestamp" in metadata:
        return _shorten_grace_period(pod, metadata["deletionGracePeriodSeconds"], grace, now)
    if asked == 0:
        return None
    marks = {"deletionTimestamp": timestamp(now + timedelta(seconds=asked)), "deletionGracePeriodSeconds": asked}
    return pod | {"metadata": metadata | marks | {"generation": metadata.get("generation", 0) + 1}}


def _shorten_grace_period(pod: Object, before: int, grace: int | None, now: datetime) -> Object | None:
    """Shorten the grace period of a pod that is being deleted; it never grows."""
    if grace == 0 or before == 0:
        return None
    if grace is None or grace >= before:
        return pod
    started = parse_time(pod["metadata"]["deletionTimestamp"]) - timedelta(seconds=before)
    until = max(started + timedelta(seconds=grace), now)
    marks = {"deletionTimestamp": timestamp(until), "deletionGracePeriodSeconds": max(grace, 1)}
    return pod | {"metadata": pod["metadata"] | marks}


def decode_binding(body: Any, name: str) -> Object:
    """Return the Binding that a client sent, for the pod of the path's name if there is one."""
    if not isinstance(body, dict) or not isinstance(body.get("target") or {}, dict):
        raise status_errors.bad_request("the object provided is unrecognized (must be of type Binding)")
    metadata, target = body.get("metadata") or {}, body.get("target") or {}
    if name not in {"", metadata.get("name")}:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    if not target.get("name"):
        raise status_errors.StatusError(500, "", "target.name: Required value")
    return {"metadata": metadata, "target": target}


def bind(store: ObjectStore, namespace: str, binding: Object, now: datetime) -> None:
    """Assign a pod to the node that a Binding names. Raises StatusError if that is not possible."""
    name = binding["metadata"].get("name", "")
    pod = store.get(PODS.key, name, namespace)
    if pod is None:
        raise status_errors.object_not_found(PODS, name)
    target = binding["target"]["name"]
    if obstacle := _binding_obstacle(pod, binding["metadata"].get("uid")):
        raise status_errors.conflict(PODS, name, obstacle, kind="pods/binding")
    node = store.get("nodes", target) or {"metadata": {}}
    labels = node["metadata"].get("labels") or {}
    topology = {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels}
    metadata = pod["metadata"] | ({"labels": (pod["metadata"].get("labels") or {}) | topology} if topology else {})
    assigned = pod | {"metadata": metadata, "spec": pod["spec"] | {"nodeName": target}}
    store.put(PODS.key, with_condition(assigned, {"type": "PodScheduled", "status": "True"}, now))


def _binding_obstacle(pod: Object, uid: str | None) -> str:
    """Return why a pod cannot be bound; empty if it can."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = metadata["name"]
    if uid not in {None, metadata["uid"]}:
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
    if "deletionTimestamp" in metadata:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def find_condition(pod: Object, kind: str) -> Object | None:
    """Return a condition of the pod, None if it has none of this type."""
    return next((entry for entry in pod["status"].get("conditions") or [] if entry["type"] == kind), None)


def with_condition(pod: Object, condition: Object, now: datetime) -> Object:
    """Return the pod with a condition in place of the one of its type, whose time stays while its status does."""
    before = find_condition(pod, condition["type"])
    is_same = before is not None and before["status"] == condition["status"]
    since = before["lastTransitionTime"] if before and is_same else timestamp(now)
    stamped = condition | {"lastProbeTime": None, "lastTransitionTime": since}
    conditions = [stamped if entry is before else entry for entry in pod["status"].get("conditions") or []]
    if before is None:
        conditions.append(stamped)
    return pod | {"status": pod["status"] | {"conditions": conditions}}


def _cells(pod: Object, now: datetime) -> list[Any]:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    statuses = status.get("containerStatuses") or []
    ready = sum(bool(container.get("ready")) for container in statuses)
    return [
        metadata["name"],
        f"{ready}/{len(spec['containers'])}",
        _summary(pod),
        str(sum(container.get("restartCount", 0) for container in statuses)),
        human_age(metadata["creationTimestamp"], now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


def _summary(pod: Object) -> str:
    """Return what kubectl prints as STATUS."""
    status = pod["status"]
    if "deletionTimestamp" in pod["metadata"] and status.get("phase") not in _TERMINAL:
        return "Terminating"
    for container in status.get("containerStatuses") or []:
        for state in ("waiting", "terminated"):
            reason = (container.get("state", {}).get(state) or {}).get("reason")
            if reason:
                return str(reason)
    return str(status.get("reason") or status.get("phase", ""))


_CONTAINER_KEYS = {"ports": "containerPort", "env": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
_SPEC_KEYS = {
    "volumes": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
}
_STATUS_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip", "resourceClaimStatuses": "name"}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")

PODS = Resource(
    plural="pods",
    singular="pod",
    kind="Pod",
    namespaced=True,
    short_names=("po",),
    categories=("all",),
    subresources={"status": STATUS_VERBS, "binding": ("create",), "eviction": ("create",), "log": ("get",)}
    | dict.fromkeys(("attach", "exec", "portforward"), ("create", "get")),
    strategy=Strategy(
        decode=_decode,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        subresources={"status": _prepare_status},
        validate=_validate,
        validate_update=_validate_update,
        graceful_delete=_graceful_delete,
        returns_deleted=True,
    ),
    merge_keys={("spec", field): MergeKey(key) for field, key in _SPEC_KEYS.items()}
    | {("status", field): MergeKey(key) for field, key in _STATUS_KEYS.items()}
    | {("spec", field): MergeKey("name") for field in _CONTAINERS}
    | {("spec", field, part): MergeKey(key) for field in _CONTAINERS for part, key in _CONTAINER_KEYS.items()},
    field_labels={
        "spec.nodeName": lambda pod: str(pod["spec"].get("nodeName", "")),
        "spec.restartPolicy": lambda pod: str(pod["spec"].get("restartPolicy", "")),
        "spec.schedulerName": lambda pod: str(pod["spec"].get("schedulerName", "")),
        "spec.serviceAccountName": lambda pod: str(pod["spec"].get("serviceAccountName", "")),
        "spec.hostNetwork": lambda pod: str(bool(pod["spec"].get("hostNetwork"))).lower(),
        "status.phase": lambda pod: str(pod["status"].get("phase", "")),
        "status.podIP": lambda pod: str(pod["status"].get("podIP", "")),
        "status.nominatedNodeName": lambda pod: str(pod["status"].get("nominatedNodeName", "")),
    },
    generic_field_labels=False,
    columns=(
        NAME,
        Column(name="Ready", description="How many of its containers are ready."),
        Column(name="Status", description="How its containers are doing, in one word."),
        Column(name="Restarts", description="How often its containers were restarted."),
        AGE,
        Column(name="IP", priority=1, description="Its first address."),
        Column(name="Node", priority=1, description="The node it is bound to."),
        Column(name="Nominated Node", priority=1, description="The node that is being made free for it."),
        Column(name="Readiness Gates", priority=1, description="Further conditions of its readiness."),
    ),
    cells=_cells,
    bookmark={"spec": {"containers": None}, "status": {}},
)
