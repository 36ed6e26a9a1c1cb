"""fake-kubelet beside a real kubelet: the same command line gives the same Node, CSINode, Lease and events."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.difference import differences
from tests.cluster.kubelet_races import FOUND_NODE, SHORT_ROUNDS
from tests.cluster.real_kubelet import RealKubelet
from tests.parity.cases import CASES, HOST_IP, HOST_IP6, Case
from tests.parity.observation import Observed

pytestmark = pytest.mark.slow

ALLOWED = yaml.safe_load((Path(__file__).parent / "allowed.yaml").read_text())
_AT_ONCE = 4  # kubelets side by side: more would only wait for the two cores, and for inotify instances
_SHORT_LEASE = {"nodeLeaseDurationSeconds": 8}  # a kubelet's first comes after a quarter of it
_SHORT_ROUND_FLAGS = [f"--node-status-update-frequency={SHORT_ROUNDS['nodeStatusUpdateFrequency']}"]


def _address(family: str) -> str | None:
    """The first address of this machine that a node may have."""
    found = (a for name, of_one in psutil.net_if_addrs().items() if name != "lo" for a in of_one)
    return next((a.address for a in found if a.family.name == family and not a.address.startswith("fe80:")), None)


_ADDRESSES = {HOST_IP: _address("AF_INET"), HOST_IP6: _address("AF_INET6")}
POSSIBLE = [case for case in CASES if _ADDRESSES[HOST_IP6] or not any(HOST_IP6 in flag for flag in case.flags)]


class Pairs:
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
def pairs(root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """Kubelets and agents side by side."""
    return Pairs(control_plane, lambda: tmp_path_factory.mktemp("k"))


def _side_by_side(control_plane: ControlPlane, batch: Sequence[Case], folders: Sequence[Path]) -> dict[str, Any]:
    nodes = [Observed(control_plane, f"parity-{CASES.index(case)}") for case in batch]
    kubelets = [
        RealKubelet(
            control_plane,
            node.name,
            folder,
            flags=[*_flags(case), *(_SHORT_ROUND_FLAGS if case.flags_only else ())],
            config=_SHORT_LEASE | SHORT_ROUNDS | case.config,
            flags_only=case.flags_only,
        )
        for case, node, folder in zip(batch, nodes, folders, strict=True)
    ]
    theirs = _run(batch, nodes, kubelets)
    agents = [
        AgentProcess(*kubelet.our_arguments, f"--port={kubelet.port}", log=kubelet.directory / "agent.log")
        for kubelet in kubelets
    ]
    ours = _run(batch, nodes, agents)
    return {case.id: pair for case, *pair in zip(batch, theirs, ours, strict=True)}


def _run(batch: Sequence[Case], nodes: Sequence[Observed], processes: Sequence[Any]) -> list[Any]:
    """Start all, look at what they make, and leave nothing behind."""
    try:
        for case, node, process in zip(batch, nodes, processes, strict=True):
            if case.by_hand:
                node.create({"mine": "kept"}, case.status)
            process.start()
        for case, node, process in zip(batch, nodes, processes, strict=True):
            if case.restarted:
                node.objects()
                node.events()
                process.stop()
                node.reboot()
                process.start()
        objects = [_looked_at(node.objects, process) for node, process in zip(nodes, processes, strict=True)]
        events = [_looked_at(node.events, process) for node, process in zip(nodes, processes, strict=True)]
        return [
            (one | {"events": told}) if isinstance(one, dict) and isinstance(told, dict) else f"{one}\n{told}"
            for one, told in zip(objects, events, strict=True)
        ]
    finally:
        for node, process in zip(nodes, processes, strict=True):
            process.stop()
            node.forget()


def _looked_at(look: Callable[[], Any], process: Any) -> Any:
    """What is to be seen; the others of a batch do not suffer from one that fails."""
    try:
        return look()
    except AssertionError as failure:
        return f"{failure}\n{process.log_text()[-3000:]}"


def _flags(case: Case) -> list[str]:
    ipv4, ipv6 = (_ADDRESSES[word] or "" for word in (HOST_IP, HOST_IP6))
    return [flag.replace(HOST_IP, ipv4).replace(HOST_IP6, ipv6) for flag in case.flags]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_cluster_sees_no_difference(case: Case, pairs: Pairs) -> None:
    if case not in POSSIBLE:
        pytest.skip("this machine has no IPv6 address")
    kubelet, ours = pairs.pair(case)
    assert isinstance(kubelet, dict), f"the kubelet itself failed: {kubelet}"
    assert isinstance(ours, dict), f"fake-kubelet failed: {ours}"
    races = FOUND_NODE if case.finds_a_node else ()
    found = differences(kubelet, ours, [*ALLOWED, *(race._asdict() for race in races)])
    assert not found, "\n".join(found)


def test_the_list_of_allowed_differences_may_only_shrink() -> None:
    assert len(ALLOWED) <= 8
    assert all(entry["reason"] for entry in ALLOWED)


@pytest.mark.parametrize("entry", ALLOWED, ids=lambda entry: entry["reason"])
def test_each_allowed_difference_is_there(entry: Any, pairs: Pairs) -> None:
    others = [other for other in ALLOWED if other is not entry]
    assert any(differences(*pairs.pair(case), allowed=others) for case in POSSIBLE)
