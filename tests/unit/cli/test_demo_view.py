"""What the demo shows of the node and its pods."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.cli.demo_view import Scene, fitting, sections, summary_line

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def pod(name: str, phase: str, second: int) -> Any:
    return {
        "metadata": {"name": name, "creationTimestamp": f"2026-01-02T03:04:{second:02d}Z"},
        "status": {"phase": phase},
    }


def scene(*pods: Any) -> Scene:
    status: Any = {
        "capacity": {"cpu": "2", "hugepages-2Mi": "0", "memory": "1Gi"},
        "allocatable": {"cpu": "1", "hugepages-2Mi": "0", "memory": "1Gi"},
        "nodeInfo": {"kubeletVersion": "v1"},
    }
    node: Any = {"metadata": {"name": "n"}, "status": status}
    return Scene(node=node, lease=None, events=(), pods=pods, signals={}, thresholds=(), now=NOW)


def rows(shown: Scene, title: str) -> list[list[str]]:
    return dict(sections(shown))[title]


def test_pods_are_counted_and_the_newest_are_named() -> None:
    pods = [pod("a", "Succeeded", 1), pod("b", "Running", 2), pod("c", "Running", 3), pod("d", "Pending", 4)]
    shown = scene(pod("oldest", "Failed", 0), *pods)
    assert rows(shown, "Pods") == [
        ["2 running, 1 pending, 5 in total"],
        ["d Pending, c Running, b Running, a Succeeded"],
    ]
    assert summary_line(shown).endswith("| pods: 2 running, 1 pending, 5 in total")


def test_without_pods_it_says_so() -> None:
    assert rows(scene(), "Pods") == [["0 running, 0 pending, 0 in total"], ["none yet"]]


def test_resources_that_the_node_lacks_are_left_out() -> None:
    assert rows(scene(), "Resources") == [["", "cpu", "memory"], ["capacity", "2", "1Gi"], ["allocatable", "1", "1Gi"]]


@pytest.mark.parametrize(("lines", "kept"), [(99, ["1", "2", "3"]), (6, ["2", "3"]), (5, ["3"]), (1, ["3"])])
def test_the_oldest_events_make_room_on_a_small_terminal(lines: int, kept: list[str]) -> None:
    page = [("Node", [["n"], ["m"]]), ("Events", [["1"], ["2"], ["3"]])]
    assert fitting(page, lines) == [page[0], ("Events", [[event] for event in kept])]
