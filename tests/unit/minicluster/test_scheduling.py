"""Which node a pod gets; what a real scheduler does, too, stands in tests/contract/test_scheduling.py."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.pods.resources import PodRequest
from agent.minicluster.scheduling import FilterFailure, NodeInfo, best_node, fit_error, rejection

FIELD: dict[str, Any] = {"key": "metadata.name", "operator": "In"}
CAPACITY = {"cpu": "2", "memory": "1Gi", "pods": "10"}


def node(name: str = "n", *, allocatable: dict[str, str] | None = None, **spec: Any) -> Any:
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable or CAPACITY}}


def pod(**spec: Any) -> Any:
    return {"metadata": {"name": "p"}, "spec": {"containers": [], **spec}}


def asking(**amounts: int) -> PodRequest:
    return PodRequest(amounts)


def test_without_nodes_the_message_is_another_one() -> None:
    assert best_node(pod(), asking(), []) == ("", "no nodes available to schedule pods")


def test_the_reasons_of_all_nodes_are_counted_and_sorted() -> None:
    rejections = [FilterFailure(["b", "a"]), FilterFailure(["b"], is_resolvable=True), FilterFailure(["c"])]
    assert fit_error(rejections) == (
        "0/3 nodes are available: 1 a, 1 c, 2 b. no new claims to deallocate, preemption: 0/3 nodes are available: "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )


def test_every_resource_that_is_short_is_named() -> None:
    found = rejection(pod(), asking(cpu=3000, memory=2 * 2**30), NodeInfo(node()))
    assert found == FilterFailure(["Insufficient cpu", "Insufficient memory"], is_resolvable=False)


def test_what_an_empty_node_could_take_is_resolvable() -> None:
    found = rejection(pod(), asking(cpu=1500), NodeInfo(node(), (asking(cpu=1000),)))
    assert found == FilterFailure(["Insufficient cpu"], is_resolvable=True)


def test_the_first_filter_that_rejects_gives_the_reason() -> None:
    cordoned = node(unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    assert rejection(pod(), asking(cpu=9000), NodeInfo(cordoned)) == FilterFailure(["node(s) were unschedulable"])


def test_the_last_millicore_can_be_used() -> None:
    assert rejection(pod(), asking(cpu=1000), NodeInfo(node(), (asking(cpu=1000),))) is None
    assert rejection(pod(), asking(cpu=1001), NodeInfo(node(), (asking(cpu=1000),))) is not None


def test_a_request_of_nothing_fits_on_a_full_node() -> None:
    assert rejection(pod(), asking(cpu=0), NodeInfo(node(), (asking(cpu=5000),))) is None


def test_pods_that_request_nothing_spread_nevertheless() -> None:
    crowded, empty = NodeInfo(node("a"), (asking(), asking())), NodeInfo(node("b"))
    assert best_node(pod(), asking(), [crowded, empty]) == ("b", "")


@pytest.mark.parametrize(
    ("preferences", "chosen"), [((10, 1), "a"), ((1, 10), "b"), ((0, 0), "b")], ids=["a", "b", "none"]
)
def test_affinity_outweighs_what_is_left(preferences: tuple[int, int], chosen: str) -> None:
    terms = [
        {
            "weight": weight,
            "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]},
        }
        for name, weight in zip("ab", preferences, strict=True)
        if weight
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    nodes = [NodeInfo(node("a"), (asking(cpu=500),)), NodeInfo(node("b"))]
    assert best_node(pod(affinity=affinity), asking(), nodes) == (chosen, "")
