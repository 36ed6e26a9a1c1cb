"""Whether the node admits a pod: kubelet's checks, in its order and with its messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent.core.capacity import is_extended
from agent.core.model import Object
from agent.core.pods.accessors import is_critical
from agent.core.pods.conditions import conditions_of_others
from agent.core.pods.info import PodInfo
from agent.core.pods.matching import accepts, tolerates
from agent.core.pods.resources import PodRequest, qos_class, units
from agent.core.quantity import Quantity
from agent.core.shutdown import SHUTTING_DOWN

NODE_AFFINITY = "NodeAffinity"
_MEMORY_TAINT = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
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


class Refusal(NamedTuple):
    """Why a pod is not admitted."""

    reason: str
    message: str


ALL_REFUSED = Refusal("PodsRefused", "This node takes no pods on (--pods=refuse).")


class Admission(NamedTuple):
    """The decision about a new pod: the node refuses it, or the pod waits for others to end, or it is admitted."""

    refusal: Refusal | None = None
    is_waiting: bool = False
    victims: Sequence[PodInfo] = ()  # the pods that the node kills to free resources for it


ADMITTED = Admission()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionContext:
    """What admission depends on beside the pod itself."""

    node: Object
    others: tuple[PodRequest, ...]  # of the active pods of the node
    pressure: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    allowed_sysctls: tuple[str, ...] = ()


def refusal(pod: Object, request: PodRequest, context: AdmissionContext) -> Refusal | None:
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


def _under_pressure(pod: Object, pressure: frozenset[str]) -> Refusal | None:
    if not pressure or is_critical(pod):
        return None
    if pressure == {"MemoryPressure"} and (
        qos_class(pod) != "BestEffort" or tolerates(pod["spec"].get("tolerations") or (), _MEMORY_TAINT)
    ):
        return None
    return Refusal("Evicted", f"The node had condition: [{' '.join(sorted(pressure))}]. ")


def _sysctl(pod: Object, allowed: Iterable[str]) -> Refusal | None:
    patterns = (*_SAFE_SYSCTLS, *allowed)
    for sysctl in (pod["spec"].get("securityContext") or {}).get("sysctls") or ():
        name = sysctl["name"].replace("/", ".")
        if not any(name == entry or (entry.endswith("*") and name.startswith(entry[:-1])) for entry in patterns):
            return Refusal("SysctlForbidden", f'forbidden sysctl: "{sysctl["name"]}" not allowlisted')
    return None


def _operating_system(pod: Object) -> Refusal | None:
    if pod["metadata"].get("labels", {}).get("kubernetes.io/os", "linux") != "linux":
        return Refusal(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if (pod["spec"].get("os") or {"name": "linux"})["name"] != "linux":
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _strict_groups(pod: Object) -> Refusal | None:
    """Refuse what only a container runtime could guarantee."""
    if (pod["spec"].get("securityContext") or {}).get("supplementalGroupsPolicy") != "Strict":
        return None
    message = "SupplementalGroupsPolicy=Strict is not supported in this node"
    return Refusal("SupplementalGroupsPolicyNotSupported", message)


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
        name: units(name, Quantity.parse(text))
        for name, text in context.node.get("status", {}).get("allocatable", {}).items()
    }
    if len(context.others) + 1 > allocatable.get("pods", 0):
        yield Shortage("pods", 1, len(context.others), allocatable.get("pods", 0))
    asked = {name: amount for name, amount in request.amounts.items() if name in allocatable or not is_extended(name)}
    for name in sorted(asked, key=lambda name: (name not in _ORDER, _ORDER.index(name) if name in _ORDER else 0)):
        used = sum(other.amounts.get(name, 0) for other in context.others)
        if asked[name] > 0 and asked[name] > allocatable.get(name, 0) - used:
            yield Shortage(name, asked[name], used, allocatable.get(name, 0))


def _out_of(request: PodRequest, context: AdmissionContext) -> Refusal | None:
    for name, requested, used, capacity in shortages(request, context):
        figures = f"requested: {requested}, used: {used}, capacity: {capacity}"
        return Refusal(f"OutOf{name}", f"Node didn't have enough resource: {name}, {figures}")
    return None


def no_room(left: Mapping[str, int]) -> Refusal:
    """Return why a critical pod is refused: so much would be missing even after preemption."""
    figures = "".join(f"(res: {name}, q: {amount}), " for name, amount in left.items())
    return Refusal(
        "UnexpectedAdmissionError",
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods "
        f"to preempt: no set of running pods found to reclaim resources: [{figures}]",
    )


def _predicates(pod: Object, request: PodRequest, context: AdmissionContext) -> Refusal | None:
    """Run the checks that the scheduler runs, too."""
    node = context.node
    if not accepts(pod, node):
        return _failed(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector")
    if _conflicts(request, context.others):
        return _failed("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    for taint in node.get("spec", {}).get("taints") or ():
        if taint["effect"] == "NoExecute" and not tolerates(pod["spec"].get("tolerations") or (), taint):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _failed(predicate: str, why: str) -> Refusal:
    return Refusal(predicate, f"Predicate {predicate} failed: {why}")


def _conflicts(request: PodRequest, others: Iterable[PodRequest]) -> bool:
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


def _shutting_down(problems: Iterable[str]) -> Refusal | None:
    if SHUTTING_DOWN not in problems:
        return None
    return Refusal("NodeShutdown", "Pod was rejected as the node is shutting down.")


def rejected_status(pod: Object, why: Refusal, now: str) -> Object:
    """Return the status of a refused pod: kubelet sets none of its own conditions."""
    generation = pod["metadata"].get("generation")
    status: Mapping[str, object] = {
        "phase": "Failed",
        "reason": why.reason,
        "message": f"Pod was rejected: {why.message}",
        "qosClass": qos_class(pod),
        "startTime": now,
        "observedGeneration": generation,
    }
    kept = {name: value for name, value in pod.get("status", {}).items() if name == "resourceClaimStatuses"}
    others = {"conditions": conditions_of_others(pod)} if conditions_of_others(pod) else {}
    return {**kept, **others, **{name: value for name, value in status.items() if value is not None}}
