"""The node-lifecycle decisions, with times of our own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.minicluster.node_lifecycle import (
    NODE_STARTUP_GRACE_SECONDS,
    EvictionMode,
    ZoneReadiness,
    is_grace_period_over,
    updated_health,
    with_beta_labels,
    with_condition_taints,
    with_pod_cidr,
    with_unknown_conditions,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GRACE = 50.0


def node(ready: str | None = "True", heartbeat: str = "t0", zone: str = "", **conditions: str) -> dict[str, Any]:
    given = {"Ready": ready, **conditions} if ready else conditions
    return {
        "metadata": {
            "name": "n",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"topology.kubernetes.io/zone": zone},
        },
        "spec": {},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "lastHeartbeatTime": heartbeat} for kind, status in given.items()
            ]
        },
    }


def lease(renewed: str) -> dict[str, Any]:
    return {"spec": {"renewTime": renewed}}


def taints(obj: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in obj["spec"].get("taints", [])]


@pytest.mark.parametrize(
    ("seen", "renewed", "at", "silent"),
    [
        pytest.param("t0", "r0", 50.0, False, id="exactly at the grace period"),
        pytest.param("t0", "r0", 50.1, True, id="just after it"),
        pytest.param("t1", "r0", 60.0, False, id="a new heartbeat"),
        pytest.param("t0", "r1", 60.0, False, id="a renewed lease"),
        pytest.param("t0", "r-", 60.0, True, id="a lease that was renewed at an earlier time"),
        pytest.param("t0", None, 60.0, True, id="the lease is gone"),
    ],
)
def test_any_sign_of_life_counts_from_when_it_was_seen(seen: str, renewed: str | None, at: float, silent: bool) -> None:
    first = updated_health(None, node(heartbeat="t0"), lease("r0"), 0.0)
    current = node(heartbeat=seen)
    health = updated_health(first, current, lease(renewed) if renewed else None, at)
    assert is_grace_period_over(health, current, at, GRACE) is silent


def test_a_node_that_never_posted_has_the_startup_grace_period() -> None:
    silent_node = node(ready=None)
    health = updated_health(None, silent_node, None, 0.0)
    assert not is_grace_period_over(health, silent_node, NODE_STARTUP_GRACE_SECONDS, GRACE)
    assert is_grace_period_over(health, silent_node, NODE_STARTUP_GRACE_SECONDS + 1, GRACE)


def test_a_silenced_node_keeps_what_is_not_its_kubelets() -> None:
    after = with_unknown_conditions(node(NetworkUnavailable="False", MemoryPressure="Unknown"), NOW)["status"][
        "conditions"
    ]
    told = {one["type"]: (one["status"], one.get("reason")) for one in after}
    assert told == {
        "Ready": ("Unknown", "NodeStatusUnknown"),
        "NetworkUnavailable": ("False", None),
        "MemoryPressure": ("Unknown", None),
        "DiskPressure": ("Unknown", "NodeStatusNeverUpdated"),
        "PIDPressure": ("Unknown", "NodeStatusNeverUpdated"),
    }
    assert after[0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert after[0]["lastHeartbeatTime"] == "t0"


def test_silencing_twice_changes_nothing() -> None:
    once = with_unknown_conditions(node(), NOW)
    assert with_unknown_conditions(once, NOW.replace(year=2027)) == once


@pytest.mark.parametrize(
    ("ready", "others", "expected"),
    [
        ("True", {}, []),
        ("False", {}, [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]),
        ("Unknown", {}, [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
        (None, {}, []),
        ("True", {"MemoryPressure": "True"}, [("memory-pressure", "NoSchedule")]),
        ("True", {"DiskPressure": "Unknown"}, []),
        ("True", {"PIDPressure": "True"}, [("pid-pressure", "NoSchedule")]),
        ("True", {"NetworkUnavailable": "True"}, [("network-unavailable", "NoSchedule")]),
    ],
)
def test_conditions_become_taints(ready: str | None, others: dict[str, str], expected: list[Any]) -> None:
    assert taints(with_condition_taints(node(ready, **others), NOW)) == expected


def test_taints_are_swapped_and_those_of_others_stay() -> None:
    own = {"key": "own", "effect": "NoExecute"}
    before = with_condition_taints(node("False"), NOW)
    before["spec"]["taints"].insert(0, own)
    after = with_condition_taints(before | {"status": node("Unknown")["status"]}, NOW)
    assert taints(after) == [("own", "NoExecute"), ("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]


def test_a_taint_that_stays_keeps_its_time() -> None:
    before = with_condition_taints(node("False"), NOW)
    assert with_condition_taints(before, NOW.replace(year=2027)) is before


def test_a_node_without_taints_has_no_list_of_them() -> None:
    healthy = with_condition_taints(node("False"), NOW) | {"status": node("True")["status"]}
    assert "taints" not in with_condition_taints(healthy, NOW)["spec"]


@pytest.mark.parametrize(
    ("others", "mode"),
    [
        pytest.param([], EvictionMode.WITHDRAWN, id="alone in the cluster"),
        pytest.param([node("False")], EvictionMode.WITHDRAWN, id="all are down"),
        pytest.param([node("True")], EvictionMode.NORMAL, id="half of two"),
        pytest.param([node("False"), node("True"), node("True")], EvictionMode.NORMAL, id="half of four"),
        pytest.param([node("False"), node("False"), node("True")], EvictionMode.SUSPENDED, id="three of four"),
        pytest.param([node("True", zone="z")], EvictionMode.NORMAL, id="its zone is down, another is not"),
        pytest.param([node("False")] * 39 + [node("True")] * 11, EvictionMode.NORMAL, id="most of a large zone"),
    ],
)
def test_evictions_depend_on_the_neighbours(others: list[dict[str, Any]], mode: EvictionMode) -> None:
    down = node("False")
    assert ZoneReadiness([down, *others]).eviction_mode(down) is mode


@pytest.mark.parametrize(
    ("before", "mode", "evicting"),
    [
        ("True", EvictionMode.NORMAL, True),
        ("True", EvictionMode.SUSPENDED, False),
        ("True", EvictionMode.WITHDRAWN, False),
        ("False", EvictionMode.SUSPENDED, True),
        ("False", EvictionMode.WITHDRAWN, False),
    ],
)
def test_taints_that_evict_follow_the_mode(before: str, mode: EvictionMode, evicting: bool) -> None:
    was = with_condition_taints(node(before), NOW)
    after = with_condition_taints(was | {"status": node("Unknown")["status"]}, NOW, mode)
    assert (("unreachable", "NoExecute") in taints(after)) is evicting
    assert ("unreachable", "NoSchedule") in taints(after)
    assert ("not-ready", "NoExecute") not in taints(after)


def test_old_labels_follow_the_new_ones() -> None:
    given = node()
    given["metadata"]["labels"] = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "plan9"}
    assert with_beta_labels(given)["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"
    assert "labels" not in with_beta_labels({"metadata": {}})["metadata"]


def test_a_node_keeps_its_addresses() -> None:
    first = with_pod_cidr(node(), "10.244.0.0/24")
    assert with_pod_cidr(first, "10.244.1.0/24") is first
    assert with_pod_cidr(node(), "")["spec"] == {}
