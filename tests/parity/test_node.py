"""fake-kubelet beside a real kubelet: the same command line gives the same Node, CSINode, Lease and events."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.parity.cases import CASES, HOST_IP, HOST_IP6, Case
from tests.parity.difference import ALLOWED, differences
from tests.parity.observation import forget, observe, reboot

_AT_ONCE = 4  # kubelets side by side: more would only wait for the two cores
_SHORT_LEASE = {"nodeLeaseDurationSeconds": 8}  # a kubelet's first comes after a quarter of it


def _address(family: str) -> str | None:
    """The first address of this machine that a node may have."""
    found = (a for name, of_one in psutil.net_if_addrs().items() if name != "lo" for a in of_one)
    return next((a.address for a in found if a.family.name == family and not a.address.startswith("fe80:")), None)


_ADDRESSES = {HOST_IP: _address("AF_INET"), HOST_IP6: _address("AF_INET6")}
POSSIBLE = [case for case in CASES if _ADDRESSES[HOST_IP6] or not any(HOST_IP6 in flag for flag in case.flags)]


class Observed:
    """What the cluster held for each case, of the real kubelet and of fake-kubelet; run in batches, when asked."""

    def __init__(self, control_plane: ControlPlane, folders: Callable[[], Path]) -> None:
        self._control_plane, self._folders = control_plane, folders
        self._found: dict[str, Any] = {}

    def pair(self, case: Case) -> Any:
        """The kubelet's objects, and ours."""
        if case.id not in self._found:
            start = POSSIBLE.index(case) // _AT_ONCE * _AT_ONCE
            batch = POSSIBLE[start : start + _AT_ONCE]
            self._found |= _side_by_side(self._control_plane, batch, [self._folders() for _ in batch])
        return self._found[case.id]


@pytest.fixture(scope="module")
def observed(root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """Kubelets and agents side by side."""
    return Observed(control_plane, lambda: tmp_path_factory.mktemp("k"))


def _side_by_side(control_plane: ControlPlane, batch: Sequence[Case], folders: Sequence[Path]) -> dict[str, Any]:
    names = [f"parity-{CASES.index(case)}" for case in batch]
    kubelets = [
        RealKubelet(
            control_plane,
            name,
            folder,
            flags=_flags(case),
            config=_SHORT_LEASE | case.config,
            flags_only=case.flags_only,
        )
        for case, name, folder in zip(batch, names, folders, strict=True)
    ]
    theirs = _run(control_plane, batch, names, kubelets)
    agents = [
        AgentProcess(*kubelet.arguments, f"--port={kubelet.port}", log=kubelet.directory / "agent.log")
        for kubelet in kubelets
    ]
    ours = _run(control_plane, batch, names, agents)
    return {case.id: pair for case, *pair in zip(batch, theirs, ours, strict=True)}


def _run(
    control_plane: ControlPlane, batch: Sequence[Case], names: Sequence[str], processes: Sequence[Any]
) -> list[Any]:
    """Start all, look at what they make, and leave nothing behind."""
    try:
        for case, name, process in zip(batch, names, processes, strict=True):
            if case.by_hand:
                control_plane.kubectl("create", "-f", "-", input=_node_by_hand(name, case.status))
            process.start()
        for case, name, process in zip(batch, names, processes, strict=True):
            if case.restarted:
                observe(control_plane, name)
                process.stop()
                reboot(control_plane, name)
                process.start()
        return [_looked_at(control_plane, *them) for them in zip(batch, names, processes, strict=True)]
    finally:
        for name, process in zip(names, processes, strict=True):
            process.stop()
            forget(control_plane, name)


def _looked_at(control_plane: ControlPlane, case: Case, name: str, process: Any) -> Any:
    try:
        found = observe(control_plane, name)
    except AssertionError as failure:
        return f"{failure}\n{process.log_text()[-3000:]}"
    if case.finds_a_node:
        # A kubelet tells it or not, by whether its CSINode is there before its first status: a race of its own.
        for reason in ("NodeReady", "NodeNotReady"):
            found["events"].pop(reason, None)
    return found


def _flags(case: Case) -> list[str]:
    ipv4, ipv6 = (_ADDRESSES[word] or "" for word in (HOST_IP, HOST_IP6))
    return [flag.replace(HOST_IP, ipv4).replace(HOST_IP6, ipv6) for flag in case.flags]


def _node_by_hand(name: str, status: Mapping[str, Any]) -> str:
    metadata = {"name": name, "labels": {"mine": "kept"}}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_cluster_sees_no_difference(case: Case, observed: Observed) -> None:
    if case not in POSSIBLE:
        pytest.skip("this machine has no IPv6 address")
    kubelet, ours = observed.pair(case)
    assert isinstance(kubelet, dict), f"the kubelet itself failed: {kubelet}"
    assert isinstance(ours, dict), f"fake-kubelet failed: {ours}"
    found = differences(kubelet, ours)
    assert not found, "\n".join(found)


def test_the_list_of_allowed_differences_may_only_shrink() -> None:
    assert len(ALLOWED) <= 8
    assert all(entry["reason"] for entry in ALLOWED)


@pytest.mark.parametrize("entry", ALLOWED, ids=lambda entry: entry["reason"])
def test_each_allowed_difference_is_there(entry: Any, observed: Observed) -> None:
    others = [other for other in ALLOWED if other is not entry]
    assert any(differences(*observed.pair(case), allowed=others) for case in POSSIBLE)
