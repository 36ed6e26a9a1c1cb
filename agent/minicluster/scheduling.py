"""Decisions of the scheduler: which nodes can take a pod, which of them is best, and why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, cast

from agent.core.pods.admission import accepts, conflicts, matches_term, tolerates
from agent.core.pods.resources import PodRequest, units
from agent.core.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.core.model import NodeObject, NodeTaint, Object, PodObject

_UNSCHEDULABLE: NodeTaint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_KEEPS_OUT = {"NoSchedule", "NoExecute"}
# kube-scheduler v1.36: the weights of its default plugins, and what it assumes of a pod that requests nothing.
_TAINT_WEIGHT, _AFFINITY_WEIGHT = 3, 2
_ASSUMED: Mapping[str, int] = {"cpu": 100, "memory": 200 * 1024 * 1024}
_BEST_SCORE = 100


@dataclass(frozen=True)
class NodeInfo:
    """A node, and what the pods that are bound to it request."""

    node: NodeObject
    requests: Sequence[PodRequest] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node["metadata"]["name"]

    @property
    def taints(self) -> Sequence[NodeTaint]:
        """The node's taints."""
        return self.node["spec"].get("taints") or ()

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """What the node has for pods, in the scheduler's units."""
        amounts = self.node["status"].get("allocatable") or {}
        return {name: units(name, parse_quantity(text)) for name, text in amounts.items()}

    def free(self, resource: str) -> int:
        """Return what no pod has requested of a resource."""
        used = sum(request.amounts.get(resource, 0) for request in self.requests)
        return self.allocatable.get(resource, 0) - used


class FilterFailure(NamedTuple):
    """Why a node cannot take a pod, and whether it could if other pods were gone."""

    reasons: Sequence[str]
    is_resolvable: bool = False


def best_node(pod: PodObject, request: PodRequest, nodes: Sequence[NodeInfo]) -> tuple[str, str]:
    """Return the name of the node that suits the pod best; without one, an empty name and the reason."""
    if not nodes:
        return "", "no nodes available to schedule pods"
    rejections = {info.name: rejection(pod, request, info) for info in nodes}
    feasible = [info for info in nodes if rejections[info.name] is None]
    if not feasible:
        return "", fit_error([reason for reason in rejections.values() if reason is not None])
    ranks = scores(pod, request, feasible)
    return max(feasible, key=lambda info: ranks[info.name]).name, ""


def rejection(pod: PodObject, request: PodRequest, info: NodeInfo) -> FilterFailure | None:
    """Return why the node cannot take the pod, by the first filter that rejects it, in kube-scheduler's order."""
    tolerations = pod["spec"].get("tolerations") or ()
    if info.node["spec"].get("unschedulable") and not tolerates(tolerations, _UNSCHEDULABLE):
        return FilterFailure(["node(s) were unschedulable"])
    if any(taint["effect"] in _KEEPS_OUT and not tolerates(tolerations, taint) for taint in info.taints):
        return FilterFailure(["node(s) had untolerated taint(s)"])
    if not accepts(pod, info.node):
        return FilterFailure(["node(s) didn't match Pod's node affinity/selector"])
    if conflicts(request, info.requests):
        return FilterFailure(["node(s) didn't have free ports for the requested pod ports"], is_resolvable=True)
    reasons = list(_shortages(request, info))
    fits_empty_node = all(amount <= info.allocatable.get(name, 0) for name, amount in request.amounts.items())
    return FilterFailure(reasons, is_resolvable=fits_empty_node) if reasons else None


def _shortages(request: PodRequest, info: NodeInfo) -> Iterator[str]:
    if len(info.requests) >= info.allocatable.get("pods", 0):
        yield "Too many pods"
    for name, amount in request.amounts.items():
        if 0 < amount > info.free(name):
            yield f"Insufficient {name}"


def fit_error(rejections: Sequence[FilterFailure]) -> str:
    """Return the message about a pod that fits on no node, as kube-scheduler words it."""
    nodes = f"0/{len(rejections)} nodes are available:"
    counts = Counter(reason for rejected in rejections for reason in rejected.reasons)
    helpless = sum(not rejected.is_resolvable for rejected in rejections)
    outcomes = Counter({"Preemption is not helpful for scheduling": helpless})
    outcomes["No preemption victims found for incoming pod"] = len(rejections) - helpless
    return f"{nodes} {_histogram(counts)}. no new claims to deallocate, preemption: {nodes} {_histogram(outcomes)}."


def _histogram(counts: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items() if count))


def scores(pod: PodObject, request: PodRequest, nodes: Sequence[NodeInfo]) -> Mapping[str, float]:
    """Rank the nodes that can take the pod: taints to avoid, preferred affinity, and what is left of the resources."""
    avoided = {info.name: _avoided_taints(pod, info) for info in nodes}
    preferred = {info.name: _preference(pod, info.node) for info in nodes}
    most_avoided, most_preferred = max(avoided.values()) or 1, max(preferred.values()) or 1
    return {
        info.name: _TAINT_WEIGHT * _BEST_SCORE * (1 - avoided[info.name] / most_avoided)
        + _AFFINITY_WEIGHT * _BEST_SCORE * preferred[info.name] / most_preferred
        + _least_allocated(request, info)
        for info in nodes
    }


def _avoided_taints(pod: PodObject, info: NodeInfo) -> int:
    tolerations = pod["spec"].get("tolerations") or ()
    return sum(taint["effect"] == "PreferNoSchedule" and not tolerates(tolerations, taint) for taint in info.taints)


def _preference(pod: PodObject, node: NodeObject) -> int:
    affinity: Object = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(cast("int", term["weight"]) for term in terms if matches_term(term["preference"], node))


def _least_allocated(request: PodRequest, info: NodeInfo) -> float:
    """Return the share of CPU and memory that is left with the pod on the node."""
    shares = [
        max(0, capacity - sum(other.amounts.get(name, assumed) for other in (*info.requests, request))) / capacity
        for name, assumed in _ASSUMED.items()
        if (capacity := info.allocatable.get(name, 0))
    ]
    return _BEST_SCORE * sum(shares) / len(shares) if shares else 0.0
