"""Real pressure on this machine, told alike by a real kubelet and by fake-kubelet; how soon, `make bench-pressure`."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.agent_process import AgentProcess, apart
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView, condition
from tests.cluster.pressure import KINDS, Supplies, small_disk, used_inodes
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.parity.observation import Observed

_KUBELET, _OURS = _NAMES = ("pressure-kubelet", "pressure-ours")


@pytest.fixture
def disk(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("d"), mebibytes=64) as mount:
        yield mount


@pytest.fixture
def supplies(disk: Path, tmp_path: Path) -> Iterator[Supplies]:
    with Supplies(tmp_path, disk) as found:
        yield found


@pytest.fixture
def nodes(
    control_plane: ControlPlane, disk: Path, tmp_path: Path, supplies: Supplies
) -> Iterator[tuple[NodeView, NodeView]]:
    """A kubelet's node and ours, with the same thresholds and the same disk."""
    config = {"evictionHard": dict(supplies.thresholds), "evictionPressureTransitionPeriod": "1s"}
    kubelet = RealKubelet(control_plane, _KUBELET, disk, config=config)
    with ExitStack() as stack:
        for name in _NAMES:
            stack.callback(Observed(control_plane, name).forget)
        stack.enter_context(kubelet)
        # The last of a flag wins: the same line, another node.
        own = ["--kubeconfig", str(control_plane.node_kubeconfig(_OURS)), "--hostname-override", _OURS]
        agent = AgentProcess(*kubelet.arguments, *own, "--healthz-port=0", *apart(tmp_path), log=tmp_path / "agent.log")
        stack.callback(agent.stop)
        agent.start()
        yield NodeView(control_plane, _KUBELET), NodeView(control_plane, _OURS)


def wait_until_both_tell(nodes: tuple[NodeView, NodeView], *kinds: str) -> None:
    """Until both have these kinds of pressure and no other, and say so in the same words."""

    def words(view: NodeView) -> list[tuple[str, str, str, str]]:
        node = view.node()
        found = {kind: condition(node, kind) for kind in KINDS}
        return [(kind, *(found[kind].get(field, "") for field in ("status", "reason", "message"))) for kind in KINDS]

    wanted = [(kind, str(kind in kinds)) for kind in KINDS]

    def is_told() -> bool:
        kubelet, ours = (words(view) for view in nodes)
        assert kubelet == ours
        assert [row[:2] for row in ours] == wanted
        return True

    eventually(is_told)


@pytest.mark.slow
def test_memory_disk_and_pid_pressure_come_and_go_on_both(
    nodes: tuple[NodeView, NodeView], supplies: Supplies, disk: Path
) -> None:
    wait_until_both_tell(nodes)
    with supplies.shortage():
        wait_until_both_tell(nodes, *KINDS)
    wait_until_both_tell(nodes)
    with used_inodes(disk, leave=20):
        wait_until_both_tell(nodes, "DiskPressure")
    wait_until_both_tell(nodes)
