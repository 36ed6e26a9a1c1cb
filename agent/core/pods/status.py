"""The status of a pod as a kubelet reports it: its phase and conditions follow from the statuses of its containers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from agent.core.model import Condition, Container, ContainerStatus, PodObject, PodStatus
from agent.core.nodestatus import find_condition
from agent.core.pods.accessors import (
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    containers,
    ephemeral_containers,
    init_containers,
    is_sidecar,
    on_host_network,
)
from agent.core.pods.container import exit_code, has_run, is_waiting, should_restart
from agent.core.pods.resources import pod_limits, pod_requests, qos_class
from agent.core.pods.termination import KillRequest
from agent.core.quantity import format_amounts
from agent.core.times import timestamp

_OWN = (
    "PodScheduled",
    "Ready",
    "Initialized",
    "ContainersReady",
    "PodReadyToStartContainers",
    "PodResizeInProgress",
    "PodResizePending",
    "AllContainersRestarting",
)
Statuses = Mapping[str, ContainerStatus]
"""The status of each container, by its name."""
_Outcome = tuple[bool, str, str]  # of a condition: status, reason, message
_DISRUPTION = "DisruptionTarget"


def phase(pod: PodObject, statuses: Statuses, *, is_over: bool) -> str:
    """Return the pod's phase by kubelet's rules; no container of a pod that is over is restarted."""
    inits = [spec for spec in init_containers(pod) if not is_sidecar(spec)]
    codes = {spec["name"]: exit_code(statuses[spec["name"]]) for spec in (*inits, *containers(pod))}
    if any(codes[spec["name"]] and not should_restart(pod, spec, codes[spec["name"]], is_init=True) for spec in inits):
        return FAILED
    if any(codes[spec["name"]] is None and not _failed_before(statuses[spec["name"]]) for spec in inits):
        return PENDING
    main = [statuses[spec["name"]] for spec in containers(pod)]
    if not is_initialized(pod, statuses) or not all(map(has_run, main)):
        return PENDING
    if any("running" in statuses[spec["name"]]["state"] for spec in _lasting(pod)):
        return RUNNING
    if not is_over and any(should_restart(pod, spec, codes[spec["name"]]) for spec in containers(pod)):
        return RUNNING
    return SUCCEEDED if all(codes[spec["name"]] == 0 for spec in containers(pod)) else FAILED


def is_initialized(pod: PodObject, statuses: Statuses) -> bool:
    """Return whether the main containers may start, or have started already."""
    return has_run_any(pod, statuses) or not incomplete(pod, statuses)


def has_run_any(pod: PodObject, statuses: Statuses) -> bool:
    """Return whether a main container was ever started, whatever state the init containers are in."""
    return any(has_run(statuses[spec["name"]]) for spec in containers(pod))


def incomplete(pod: PodObject, statuses: Statuses) -> list[str]:
    """Return the init containers that the main containers wait for."""
    return [spec["name"] for spec in init_containers(pod) if is_waited_for(spec, statuses)]


def is_waited_for(init: Container, statuses: Statuses) -> bool:
    """Return whether the next container must not start before this init container has got further."""
    return not statuses[init["name"]].get("started" if is_sidecar(init) else "ready")


def pod_conditions(pod: PodObject, statuses: Statuses, phase: str, *, has_sandbox: bool, now: str) -> list[Condition]:
    """Return the conditions that others set, unchanged, then kubelet's own in its order."""
    containers_ready = _containers_ready(pod, statuses, phase)
    own = {
        "PodReadyToStartContainers": (has_sandbox, "", ""),
        "Initialized": _initialized(pod, statuses, phase),
        "Ready": _ready(pod) if containers_ready[0] else containers_ready,
        "ContainersReady": containers_ready,
        "PodScheduled": (True, "", ""),
    }
    return [*conditions_of_others(pod), *(_condition(pod, kind, *outcome, now=now) for kind, outcome in own.items())]


def conditions_of_others(pod: PodObject) -> list[Condition]:
    """Return the conditions that a kubelet leaves unchanged."""
    return [entry for entry in pod.get("status", {}).get("conditions") or () if entry["type"] not in _OWN]


def _containers_ready(pod: PodObject, statuses: Statuses, phase: str) -> _Outcome:
    if phase in {SUCCEEDED, FAILED}:
        return False, "PodCompleted" if phase == SUCCEEDED else "PodFailed", ""
    unready = [spec["name"] for spec in _lasting(pod) if not statuses[spec["name"]]["ready"]]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: {_go_list(unready)}"
    return True, "", ""


def _initialized(pod: PodObject, statuses: Statuses, phase: str) -> _Outcome:
    if phase == SUCCEEDED:
        return True, "PodCompleted", ""
    if not is_initialized(pod, statuses):
        message = f"containers with incomplete status: {_go_list(incomplete(pod, statuses))}"
        return False, "ContainersNotInitialized", message
    return True, "", ""


def _ready(pod: PodObject) -> _Outcome:
    """Check the readiness gates: conditions that other controllers set."""
    faults = []
    reported = {entry["type"]: entry for entry in reversed(pod.get("status", {}).get("conditions") or ())}  # first wins
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        reported_gate = reported.get(kind)
        if reported_gate is None:
            faults.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif reported_gate["status"] != "True":
            faults.append(f'the status of pod readiness gate "{kind}" is not "True", but {reported_gate["status"]}')
    return (False, "ReadinessGatesNotReady", ", ".join(faults)) if faults else (True, "", "")


def _condition(pod: PodObject, kind: str, holds: bool, reason: str, message: str, *, now: str) -> Condition:
    old = find_condition(pod.get("status", {}), kind)
    is_same = old is not None and old["status"] == str(holds) and old.get("lastTransitionTime")
    condition: Condition = {
        "type": kind,
        "status": str(holds),
        "lastProbeTime": None,
        "lastTransitionTime": old["lastTransitionTime"] if old and is_same else now,
    }
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _lasting(pod: PodObject) -> Sequence[Container]:
    return [*filter(is_sidecar, init_containers(pod)), *containers(pod)]


def _failed_before(status: ContainerStatus) -> bool:
    return is_waiting(status) and has_run(status)


def _go_list(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContext:
    """What the next status of a pod depends on beside the pod."""

    now: datetime
    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...] | None  # None: the pod waits for addresses
    job_seconds: float
    understands_commands: bool = True  # plain commands decide how long containers run
    kill_request: KillRequest | None = None


def pod_status(pod: PodObject, statuses: Statuses, phase: str, context: PodContext, *, has_sandbox: bool) -> PodStatus:
    """Return the status of a pod in this phase; fields that a kubelet does not own stay unchanged."""
    now, old = timestamp(context.now), pod.get("status", {})
    own = {
        "phase": phase,
        "conditions": pod_conditions(pod, statuses, phase, has_sandbox=has_sandbox, now=now),
        "hostIP": next(iter(context.host_ips), None),
        "hostIPs": _addresses(context.host_ips),
        "startTime": old.get("startTime") or now,
        "qosClass": qos_class(pod),
        "observedGeneration": pod["metadata"].get("generation"),
        "initContainerStatuses": [statuses[spec["name"]] for spec in init_containers(pod)],
        "containerStatuses": _in_order(containers(pod), statuses),
        "ephemeralContainerStatuses": _in_order(ephemeral_containers(pod), statuses),
    }
    kept = {name: value for name, value in old.items() if name not in own}
    reported = {name: value for name, value in own.items() if value not in (None, [])}
    has_network = on_host_network(pod) or any(map(has_run, statuses.values()))
    addresses = network(pod, context) if has_network else {}
    return cast("PodStatus", {**kept, **addresses, **_resources(pod), **reported})


def with_disruption(pod: PodObject, status: PodStatus, message: str, now: datetime) -> PodStatus:
    """Add the condition DisruptionTarget, before kubelet's own, to the status of a pod that the node has killed."""
    disruption: Condition = {
        "type": _DISRUPTION,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "reason": "TerminationByKubelet",
        "message": message,
    }
    if generation := pod["metadata"].get("generation"):
        disruption["observedGeneration"] = generation
    others = [entry for entry in status["conditions"] if entry["type"] != _DISRUPTION]
    place = len([entry for entry in conditions_of_others(pod) if entry["type"] != _DISRUPTION])
    return {**status, "conditions": [*others[:place], disruption, *others[place:]]}


def network(pod: PodObject, context: PodContext) -> PodStatus:
    """Return the pod's addresses, unless it has some: the node's own on the host network, otherwise its pod IPs."""
    ips = context.host_ips if on_host_network(pod) else context.pod_ips
    if not ips or pod.get("status", {}).get("podIP"):
        return {}
    return {"podIP": ips[0], "podIPs": _addresses(ips)}


def _resources(pod: PodObject) -> PodStatus:
    requests, limits = format_amounts(pod_requests(pod)), format_amounts(pod_limits(pod))
    reported: PodStatus = {"resources": {}}
    if limits:
        reported["resources"]["limits"] = limits
    if requests:
        reported["resources"]["requests"] = reported["allocatedResources"] = requests
    return reported


def _in_order(specs: Iterable[Container], statuses: Statuses) -> list[ContainerStatus]:
    return [statuses[name] for name in sorted(spec["name"] for spec in specs)]


def _addresses(ips: Iterable[str]) -> list[dict[str, str]]:
    return [{"ip": ip} for ip in ips]
