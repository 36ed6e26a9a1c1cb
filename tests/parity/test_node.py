"""fake-kubelet beside a real kubelet: the same command line gives the same Node, CSINode, Lease and events."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.parity.cases import CASES, HOST_IP, Case
from tests.parity.difference import ALLOWED, differences
from tests.parity.observation import forget, observe

_AT_ONCE = 4  # kubelets side by side: more would only wait for the two cores


@pytest.fixture(scope="module")
def observed(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """What the cluster held for each case: of the real kubelet, and of fake-kubelet."""
    found = {}
    for start in range(0, len(CASES), _AT_ONCE):
        batch = CASES[start : start + _AT_ONCE]
        found |= _side_by_side(control_plane, batch, [tmp_path_factory.mktemp("k") for _ in batch])
    return found


def _side_by_side(control_plane: ControlPlane, batch: Sequence[Case], folders: Sequence[Path]) -> dict[str, Any]:
    names = [f"parity-{CASES.index(case)}" for case in batch]
    kubelets = [
        RealKubelet(control_plane, name, folder, flags=_flags(case), config=case.config, flags_only=case.flags_only)
        for case, name, folder in zip(batch, names, folders, strict=True)
    ]
    theirs = _run(control_plane, batch, names, kubelets)
    agents = [AgentProcess(*kubelet.arguments, log=kubelet.directory / "agent.log") for kubelet in kubelets]
    ours = _run(control_plane, batch, names, agents)
    return {case.id: pair for case, *pair in zip(batch, theirs, ours, strict=True)}


def _run(
    control_plane: ControlPlane, batch: Sequence[Case], names: Sequence[str], processes: Sequence[Any]
) -> list[Any]:
    """Start all, look at what they make, and leave nothing behind."""
    try:
        for case, name, process in zip(batch, names, processes, strict=True):
            if case.by_hand:
                control_plane.kubectl("create", "-f", "-", input=_bare_node(name))
            process.start()
        return [_looked_at(control_plane, *them) for them in zip(batch, names, processes, strict=True)]
    finally:
        for name, process in zip(names, processes, strict=True):
            process.stop()
            forget(control_plane, name)


def _looked_at(control_plane: ControlPlane, case: Case, name: str, process: Any) -> Any:
    try:
        return observe(control_plane, name, lease=case.lease)
    except AssertionError as failure:
        return f"{failure}\n{process.log_text()[-3000:]}"


def _flags(case: Case) -> list[str]:
    addresses = psutil.net_if_addrs()
    ours = next(
        a.address for name, found in addresses.items() if name != "lo" for a in found if a.family.name == "AF_INET"
    )
    return [flag.replace(HOST_IP, ours) for flag in case.flags]


def _bare_node(name: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"mine": "kept"}}})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_cluster_sees_no_difference(case: Case, observed: dict[str, tuple[Any, Any]]) -> None:
    kubelet, ours = observed[case.id]
    assert isinstance(kubelet, dict), f"the kubelet itself failed: {kubelet}"
    assert isinstance(ours, dict), f"fake-kubelet failed: {ours}"
    assert differences(kubelet, ours) == []


def test_the_list_of_allowed_differences_stays_short() -> None:
    assert len(ALLOWED) <= 12
    assert all(entry["reason"] for entry in ALLOWED)
