"""The phase of a pod and its conditions, from the statuses of its containers."""

from collections.abc import Iterable, Mapping, Sequence

from agent.core.conditions import find_condition
from agent.core.model import Object
from agent.core.pods.container import exit_code, has_run, is_waiting
from agent.core.pods.parts import FAILED, PENDING, RUNNING, SUCCEEDED, containers, init_containers, is_sidecar
from agent.core.pods.restarts import is_restarted

OWN = (
    "PodScheduled",
    "Ready",
    "Initialized",
    "ContainersReady",
    "PodReadyToStartContainers",
    "PodResizeInProgress",
    "PodResizePending",
    "AllContainersRestarting",
)
Statuses = Mapping[str, Object]
"""The status of each container, by its name."""


def phase(pod: Object, statuses: Statuses, *, is_over: bool) -> str:
    """Kubelet's rule; a pod that is over has no container that would be run again."""
    inits = [one for one in init_containers(pod) if not is_sidecar(one)]
    codes = {one["name"]: exit_code(statuses[one["name"]]) for one in (*inits, *containers(pod))}
    if any(codes[one["name"]] and not is_restarted(pod, one, codes[one["name"]], is_init=True) for one in inits):
        return FAILED
    if any(codes[one["name"]] is None and not _failed_before(statuses[one["name"]]) for one in inits):
        return PENDING
    main = [statuses[one["name"]] for one in containers(pod)]
    if not is_initialized(pod, statuses) or not all(map(has_run, main)):
        return PENDING
    if any("running" in statuses[one["name"]]["state"] for one in _lasting(pod)):
        return RUNNING
    if not is_over and any(is_restarted(pod, one, codes[one["name"]]) for one in containers(pod)):
        return RUNNING
    return SUCCEEDED if all(codes[one["name"]] == 0 for one in containers(pod)) else FAILED


def is_initialized(pod: Object, statuses: Statuses) -> bool:
    """Whether what comes after the init containers may run, or has run already."""
    return has_run_any(pod, statuses) or not incomplete(pod, statuses)


def has_run_any(pod: Object, statuses: Statuses) -> bool:
    """Whether a container proper was ever started, whatever the init containers are said to be doing."""
    return any(has_run(statuses[one["name"]]) for one in containers(pod))


def incomplete(pod: Object, statuses: Statuses) -> list[str]:
    """The init containers that others wait for."""
    return [one["name"] for one in init_containers(pod) if is_waited_for(one, statuses)]


def is_waited_for(init: Object, statuses: Statuses) -> bool:
    """Whether an init container has not come so far that the next container may be started."""
    return not statuses[init["name"]].get("started" if is_sidecar(init) else "ready")


def conditions(pod: Object, statuses: Statuses, phase: str, *, has_sandbox: bool, now: str) -> list[Object]:
    """The conditions of others as they are, then ours in kubelet's order."""
    containers_ready = _containers_ready(pod, statuses, phase)
    told = {
        "PodReadyToStartContainers": (has_sandbox, "", ""),
        "Initialized": _initialized(pod, statuses, phase),
        "Ready": _ready(pod) if containers_ready[0] else containers_ready,
        "ContainersReady": containers_ready,
        "PodScheduled": (True, "", ""),
    }
    return [*foreign(pod), *(_condition(pod, kind, *words, now=now) for kind, words in told.items())]


def foreign(pod: Object) -> list[Object]:
    """The conditions that a kubelet leaves alone."""
    return [one for one in pod.get("status", {}).get("conditions") or () if one["type"] not in OWN]


_Words = tuple[bool, str, str]


def _containers_ready(pod: Object, statuses: Statuses, phase: str) -> _Words:
    if phase in {SUCCEEDED, FAILED}:
        return False, "PodCompleted" if phase == SUCCEEDED else "PodFailed", ""
    unready = [one["name"] for one in _lasting(pod) if not statuses[one["name"]]["ready"]]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: {_listed(unready)}"
    return True, "", ""


def _initialized(pod: Object, statuses: Statuses, phase: str) -> _Words:
    if phase == SUCCEEDED:
        return True, "PodCompleted", ""
    if not is_initialized(pod, statuses):
        message = f"containers with incomplete status: {_listed(incomplete(pod, statuses))}"
        return False, "ContainersNotInitialized", message
    return True, "", ""


def _ready(pod: Object) -> _Words:
    """Readiness gates are conditions that others set."""
    faults = []
    told = {one["type"]: one for one in reversed(pod.get("status", {}).get("conditions") or ())}  # the first counts
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        found = told.get(kind)
        if found is None:
            faults.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found["status"] != "True":
            faults.append(f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}')
    return (False, "ReadinessGatesNotReady", ", ".join(faults)) if faults else (True, "", "")


def _condition(pod: Object, kind: str, holds: bool, reason: str, message: str, *, now: str) -> Object:
    old = find_condition(pod.get("status", {}), kind)
    is_same = old is not None and old["status"] == str(holds) and old.get("lastTransitionTime")
    condition = {
        "type": kind,
        "status": str(holds),
        "lastProbeTime": None,
        "lastTransitionTime": old["lastTransitionTime"] if old and is_same else now,
    }
    optional = {"observedGeneration": pod["metadata"].get("generation"), "reason": reason, "message": message}
    return condition | {name: value for name, value in optional.items() if value}


def _lasting(pod: Object) -> Sequence[Object]:
    return [*filter(is_sidecar, init_containers(pod)), *containers(pod)]


def _failed_before(status: Object) -> bool:
    return is_waiting(status) and has_run(status)


def _listed(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"
