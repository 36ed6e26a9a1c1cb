"""A fleet on a real control plane."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.nodestatus import is_ready
from agent.core.times import exact_time
from tests.cluster import build
from tests.cluster.api import NODES
from tests.cluster.command import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.slow

COUNT = 200
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_SECONDS = 40


@pytest.fixture(scope="module")
def plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that the other tests' nodes do not meet."""
    with ControlPlane(tmp_path_factory.mktemp("fleet"), binaries=build.binaries(build=False)) as control_plane:
        yield control_plane


def fleet(plane: ControlPlane, *words: str) -> list[str]:
    return [sys.executable, "-m", "agent", "fleet", *words, f"--kubeconfig={plane.admin_kubeconfig}"]


def ready(plane: ControlPlane) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in plane.api.items(NODES) if is_ready(node.get("status", {}))}


def renewals(plane: ControlPlane) -> dict[str, str]:
    return {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in plane.api.items(LEASES)}


def test_two_hundred_nodes_are_ready_stay_so_over_a_restart_and_are_deleted(
    plane: ControlPlane, tmp_path: Path
) -> None:
    process = Process("fleet", fleet(plane, f"--count={COUNT}", "--healthz-port=0"), log=tmp_path / "fleet.log")
    process.start()
    before = eventually(lambda: ready(plane), lambda found: len(found) == COUNT, within=300)
    first = eventually(lambda: renewals(plane), lambda found: len(found) == COUNT)
    eventually(lambda: all(at > first[name] for name, at in renewals(plane).items()))
    process.kill()
    at_end = renewals(plane)
    process.start()
    eventually(lambda: all(at > at_end[name] for name, at in renewals(plane).items()))
    gaps = [(exact_time(at) - exact_time(at_end[name])).total_seconds() for name, at in renewals(plane).items()]
    assert len(gaps) == COUNT
    after = ready(plane)
    if max(gaps) < LEASE_SECONDS:  # or the machine was too busy to start us in that time
        assert len(after) == COUNT
        assert [_ready_since(node) for node in after.values()] == [_ready_since(before[name]) for name in after]
    process.stop()
    assert len(ready(plane)) == COUNT
    assert run(fleet(plane, "delete")) == f"Deleted {COUNT} nodes of fleet fleet.\n"
    eventually(lambda: not plane.api.items(NODES) and not plane.api.items(LEASES))


def test_rights_that_are_missing_are_named_before_anything_is_created(plane: ControlPlane, tmp_path: Path) -> None:
    kubeconfig = plane.user_kubeconfig("nobody", "nobody")
    argv = [sys.executable, "-m", "agent", "fleet", "--count=3", "--healthz-port=0", f"--kubeconfig={kubeconfig}"]
    process = Process("fleet", argv, log=tmp_path / "fleet.log")
    process.start()
    assert process.wait(within=120) == 1
    (line,) = process.log_text().splitlines()
    assert line.startswith("error: the credentials may not get nodes, list nodes, ")
    assert "create leases.coordination.k8s.io in kube-node-lease" in line


def _ready_since(node: Any) -> str:
    return next(one["lastTransitionTime"] for one in node["status"]["conditions"] if one["type"] == "Ready")
