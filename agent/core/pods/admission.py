"""Whether the node admits a pod: kubelet's checks, in its order and with its messages, and its preemption."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from agent.core.capacity import is_extended
from agent.core.model import NodeObject, NodeTaint, Object, PodObject, PodStatus
from agent.core.pods.accessors import is_critical
from agent.core.pods.info import PodInfo
from agent.core.pods.resources import PodRequest, qos_class, units
from agent.core.pods.status import conditions_of_others
from agent.core.pods.termination import KillRequest
from agent.core.quantity import parse_int, parse_quantity
from agent.core.shutdown import SHUTTING_DOWN

NODE_AFFINITY = "NodeAffinity"
_MEMORY_TAINT: NodeTaint = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
_ORDER = ("cpu", "memory", "ephemeral-storage")
_ANY_ADDRESS = "0.0.0.0"  # noqa: S104  as the scheduler writes it
# kubelet v1.36: sysctl.safeSysctls
_SAFE_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)


_PREEMPTED = ("Preempting", "Preempted in order to admit critical pod")
_PREEMPTED_CONDITION = "Pod was preempted by Kubelet to accommodate a critical pod."


class Rejection(NamedTuple):
    """Why a pod is not admitted."""

    reason: str
    message: str


ALL_REJECTED = Rejection("PodsRefused", "This node takes no pods on (--pods=refuse).")


class Admission(NamedTuple):
    """The decision about a new pod: the node rejects it, or the pod waits for others to end, or it is admitted."""

    rejection: Rejection | None = None
    is_waiting: bool = False
    victims: Sequence[PodInfo] = ()  # the pods that the node kills to free resources for it


ADMITTED = Admission()

Missing = Mapping[str, int]
"""What a pod lacks, by resource, in the scheduler's units."""
_Requesting = tuple[PodInfo, Mapping[str, int]]  # a pod, and what it requests


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionContext:
    """What admission depends on beside the pod itself."""

    node: NodeObject
    others: tuple[PodRequest, ...]  # of the active pods of the node
    pressure: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    allowed_sysctls: tuple[str, ...] = ()


def rejection(pod: PodObject, request: PodRequest, context: AdmissionContext) -> Rejection | None:
    """Return the first reason not to admit the pod; None means that there is none."""
    return (
        _under_pressure(pod, context.pressure)
        or _sysctl(pod, context.allowed_sysctls)
        or _operating_system(pod)
        or _strict_groups(pod)
        or (None if is_critical(pod) else _out_of(request, context))  # other pods are preempted for a critical one
        or _predicates(pod, request, context)
        or _shutting_down(context.problems)
    )


def _under_pressure(pod: PodObject, pressure: frozenset[str]) -> Rejection | None:
    if not pressure or is_critical(pod):
        return None
    if pressure == {"MemoryPressure"} and (
        qos_class(pod) != "BestEffort" or tolerates(pod["spec"].get("tolerations") or (), _MEMORY_TAINT)
    ):
        return None
    return Rejection("Evicted", f"The node had condition: [{' '.join(sorted(pressure))}]. ")


def _sysctl(pod: PodObject, allowed: Iterable[str]) -> Rejection | None:
    patterns = (*_SAFE_SYSCTLS, *allowed)
    for sysctl in (pod["spec"].get("securityContext") or {}).get("sysctls") or ():
        name = sysctl["name"].replace("/", ".")
        if not any(name == entry or (entry.endswith("*") and name.startswith(entry[:-1])) for entry in patterns):
            return Rejection("SysctlForbidden", f'forbidden sysctl: "{sysctl["name"]}" not allowlisted')
    return None


def _operating_system(pod: PodObject) -> Rejection | None:
    if pod["metadata"].get("labels", {}).get("kubernetes.io/os", "linux") != "linux":
        return Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if (pod["spec"].get("os") or {"name": "linux"})["name"] != "linux":
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _strict_groups(pod: PodObject) -> Rejection | None:
    """Reject what only a container runtime could guarantee."""
    if (pod["spec"].get("securityContext") or {}).get("supplementalGroupsPolicy") != "Strict":
        return None
    message = "SupplementalGroupsPolicy=Strict is not supported in this node"
    return Rejection("SupplementalGroupsPolicyNotSupported", message)


class Shortage(NamedTuple):
    """A resource of which a pod requests more than the node has left."""

    name: str
    requested: int
    used: int
    capacity: int

    @property
    def missing(self) -> int:
        """How much would have to be freed."""
        return self.requested - (self.capacity - self.used)


def shortages(request: PodRequest, context: AdmissionContext) -> Iterator[Shortage]:
    """Yield what the node is short of, the number of pods first; extended resources that it lacks are ignored."""
    allocatable = {
        name: units(name, parse_quantity(text))
        for name, text in context.node.get("status", {}).get("allocatable", {}).items()
    }
    if len(context.others) + 1 > allocatable.get("pods", 0):
        yield Shortage("pods", 1, len(context.others), allocatable.get("pods", 0))
    asked = {name: amount for name, amount in request.amounts.items() if name in allocatable or not is_extended(name)}
    for name in sorted(asked, key=lambda name: (name not in _ORDER, _ORDER.index(name) if name in _ORDER else 0)):
        used = sum(other.amounts.get(name, 0) for other in context.others)
        if asked[name] > 0 and asked[name] > allocatable.get(name, 0) - used:
            yield Shortage(name, asked[name], used, allocatable.get(name, 0))


def _out_of(request: PodRequest, context: AdmissionContext) -> Rejection | None:
    for name, requested, used, capacity in shortages(request, context):
        figures = f"requested: {requested}, used: {used}, capacity: {capacity}"
        return Rejection(f"OutOf{name}", f"Node didn't have enough resource: {name}, {figures}")
    return None


def _predicates(pod: PodObject, request: PodRequest, context: AdmissionContext) -> Rejection | None:
    """Run the checks that the scheduler runs, too."""
    node = context.node
    if not accepts(pod, node):
        return _failed(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector")
    if conflicts(request, context.others):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    for taint in node.get("spec", {}).get("taints") or ():
        if taint["effect"] == "NoExecute" and not tolerates(pod["spec"].get("tolerations") or (), taint):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {why}")


def conflicts(request: PodRequest, others: Iterable[PodRequest]) -> bool:
    """Return whether another pod uses a host port, at the same address or at any; there may be thousands of ports."""
    if not request.host_ports:
        return False
    taken: dict[tuple[str, int], set[str]] = {}
    for other in others:
        for address, protocol, port in other.host_ports:
            taken.setdefault((protocol, port), set()).add(address)
    return any(
        used and (address == _ANY_ADDRESS or not used.isdisjoint({address, _ANY_ADDRESS}))
        for address, protocol, port in request.host_ports
        if (used := taken.get((protocol, port)))
    )


def _shutting_down(problems: Iterable[str]) -> Rejection | None:
    if SHUTTING_DOWN not in problems:
        return None
    return Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")


def rejected_status(pod: PodObject, why: Rejection, now: str) -> PodStatus:
    """Return the status of a rejected pod: kubelet sets none of its own conditions."""
    status: PodStatus = {
        "phase": "Failed",
        "reason": why.reason,
        "message": f"Pod was rejected: {why.message}",
        "qosClass": qos_class(pod),
        "startTime": now,
    }
    if (generation := pod["metadata"].get("generation")) is not None:
        status["observedGeneration"] = generation
    if conditions := conditions_of_others(pod):
        status["conditions"] = conditions
    if "resourceClaimStatuses" in pod.get("status", {}):
        status["resourceClaimStatuses"] = pod["status"]["resourceClaimStatuses"]
    return status


def accepts(pod: PodObject, node: NodeObject) -> bool:
    """Return whether nodeSelector and the required node affinity of a pod match the node."""
    labels = node["metadata"].get("labels", {})
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or ())


def tolerates(tolerations: Iterable[Object], taint: NodeTaint) -> bool:
    """Return whether one of the tolerations matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def matches_term(term: Object, node: NodeObject) -> bool:
    """Return whether all requirements match; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    names = {"metadata.name": node["metadata"]["name"]}
    return bool(expressions or fields) and (
        all(_matches(entry, node["metadata"].get("labels", {})) for entry in expressions)
        and all(_matches(entry, names) for entry in fields)
    )


def _matches(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    value = labels.get(key)
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return value is not None and _compares(operator, value, values[0] if values else "")
        case _:
            return False


def _tolerates(toleration: Object, taint: NodeTaint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator, value = toleration.get("operator") or "Equal", toleration.get("value", "")
    if operator in {"Gt", "Lt"}:
        return _compares(operator, taint.get("value", ""), value)
    return operator == "Exists" or (operator == "Equal" and value == taint.get("value", ""))


def _compares(operator: str, left: str, right: str) -> bool:
    try:
        first, second = parse_int(left, bits=64), parse_int(right, bits=64)
    except ValueError:
        return False
    return first > second if operator == "Gt" else first < second


def preempt(pod: PodInfo, missing: Missing, *, running: Sequence[PodInfo], terminating: Sequence[PodInfo]) -> Admission:
    """Decide which pods end so that a critical pod gets what is missing; reject the pod where that is not enough."""
    left = still_missing(missing, terminating)
    candidates = [other for other in running if is_preemptable(other, by=pod)] if left else []
    if short := still_missing(left, candidates):
        figures = "".join(f"(res: {name}, q: {amount}), " for name, amount in short.items())
        message = (
            "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
            f"pods to preempt: no set of running pods found to reclaim resources: [{figures}]"
        )
        return Admission(rejection=Rejection("UnexpectedAdmissionError", message))
    return Admission(is_waiting=True, victims=victims(candidates, left))


def kill_for_preemption(pod: PodInfo, now: datetime) -> KillRequest:
    """Return the request to kill a preempted pod."""
    return KillRequest(*_PREEMPTED, float(pod.grace_seconds), now, _PREEMPTED_CONDITION)


def is_preemptable(pod: PodInfo, by: PodInfo) -> bool:
    """Return whether one pod may be killed for another."""
    return by.is_critical and (not pod.is_critical or pod.priority < by.priority)


def still_missing(missing: Missing, pods: Sequence[PodInfo]) -> Missing:
    """Return what would still be missing if all of these pods ended."""
    return _left(missing, _requesting(pods))


def victims(pods: Sequence[PodInfo], missing: Missing) -> list[PodInfo]:
    """Return as few pods as possible that free what is missing, those of the lowest QoS class first."""
    candidates = _requesting(pods)
    effort, burst, guaranteed = (
        [entry for entry in candidates if entry[0].qos_class == kind]
        for kind in ("BestEffort", "Burstable", "Guaranteed")
    )
    # Of each class only the pods that are needed although all of the classes below end.
    from_guaranteed = _nearest(guaranteed, _left(missing, [*effort, *burst]))
    from_burst = _nearest(burst, _left(missing, [*effort, *from_guaranteed]))
    from_effort = _nearest(effort, _left(missing, [*from_burst, *from_guaranteed]))
    return [pod for pod, _ in (*from_effort, *from_burst, *from_guaranteed)]


def _requesting(pods: Sequence[PodInfo]) -> list[_Requesting]:
    return [(pod, {**pod.request.amounts, "pods": 1}) for pod in pods]


def _left(missing: Missing, ended: Sequence[_Requesting]) -> Missing:
    left = {name: amount - sum(requested.get(name, 0) for _, requested in ended) for name, amount in missing.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(pods: list[_Requesting], missing: Missing) -> list[_Requesting]:
    """Choose one pod after the other, each time the one that leaves least missing; of equals the smaller one."""
    left, chosen = list(pods), []
    while missing and left:
        best = min(left, key=lambda pod: (_distance(pod[1], missing), pod[1].get("memory", 0), pod[1].get("cpu", 0)))
        left.remove(best)
        chosen.append(best)
        missing = _left(missing, [best])
    return chosen


def _distance(requested: Mapping[str, int], missing: Missing) -> float:
    """Return how much would still be missing; every resource has the same weight."""
    shares = ((amount - requested.get(name, 0)) / amount for name, amount in missing.items())
    return sum(share**2 for share in shares if share > 0)
