"""Real pressure on this machine, told alike by a real kubelet and by fake-kubelet."""

import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.host import LinuxHost
from agent.core.config import Config
from agent.core.eviction import observe
from tests.cluster.agent_process import AgentProcess, apart
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.parity.observation import forget
from tests.parity.pressure import allocated_memory, filled_disk, small_disk, used_inodes, waiting_threads

_KINDS = ("MemoryPressure", "DiskPressure", "PIDPressure")
_MEMORY_STEP, _THREAD_STEP = 2**30, 400


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if os.geteuid() != 0:
        pytest.skip("mounting a filesystem needs root")
    with small_disk(tmp_path_factory.mktemp("d"), mebibytes=64) as mount:
        yield mount


def thresholds() -> dict[str, str]:
    """A little less than what is there now, so that a little use is pressure."""
    now = observe(asyncio.run(LinuxHost(Config(node_name="n")).snapshot()))
    return {
        "memory.available": str(now["memory.available"].available - _MEMORY_STEP),
        "pid.available": str(now["pid.available"].available - _THREAD_STEP),
        "nodefs.available": "20%",
        "nodefs.inodesFree": "20%",
    }


def conditions(control_plane: ControlPlane, name: str) -> dict[str, dict[str, Any]]:
    found = {c["type"]: c for c in control_plane.get("node", name)["status"].get("conditions", [])}
    return {kind: found[kind] for kind in _KINDS}


def seconds_until(control_plane: ControlPlane, name: str, status: str, since: float, within: float) -> float:
    eventually(
        lambda: all(c["status"] == status for c in conditions(control_plane, name).values()), within=within, every=0.2
    )
    return time.monotonic() - since


def told(control_plane: ControlPlane, name: str) -> list[tuple[str, str, str, str]]:
    return [(c["type"], c["status"], c["reason"], c["message"]) for c in conditions(control_plane, name).values()]


@pytest.mark.timeout(300)
def test_memory_disk_and_pid_pressure_come_and_go_on_both(
    control_plane: ControlPlane, disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("pressure-kubelet", "pressure-ours")
    config = {"evictionHard": thresholds(), "evictionPressureTransitionPeriod": "1s"}
    kubelet = RealKubelet(control_plane, names[0], disk, config=config)
    with ExitStack() as stack:
        for name in names:
            stack.callback(forget, control_plane, name)
        stack.enter_context(kubelet)
        # The last of a flag wins: the same line, another node.
        own = ["--kubeconfig", str(control_plane.node_kubeconfig(names[1])), "--hostname-override", names[1]]
        agent = AgentProcess(*kubelet.arguments, *own, "--healthz-port=0", *apart(tmp_path), log=tmp_path / "agent.log")
        stack.callback(agent.stop)
        agent.start()
        for name in names:
            seconds_until(control_plane, name, "False", time.monotonic(), within=30)

        with ExitStack() as burden:
            burden.enter_context(allocated_memory(2 * _MEMORY_STEP))
            burden.enter_context(waiting_threads(2 * _THREAD_STEP))
            burden.enter_context(filled_disk(disk, leave_bytes=2**20))
            start = time.monotonic()
            ours_rise = seconds_until(control_plane, names[1], "True", start, within=20)
            theirs_rise = seconds_until(control_plane, names[0], "True", start, within=60)
            assert told(control_plane, names[0]) == told(control_plane, names[1])
        start = time.monotonic()
        ours_fall = seconds_until(control_plane, names[1], "False", start, within=20)
        theirs_fall = seconds_until(control_plane, names[0], "False", start, within=90)
        assert told(control_plane, names[0]) == told(control_plane, names[1])

        with used_inodes(disk, leave=20):
            for name in names:
                eventually(
                    lambda name=name: conditions(control_plane, name)["DiskPressure"]["status"] == "True", within=60
                )
    with capsys.disabled():
        print(f"\npressure told after: kubelet {theirs_rise:.1f} s, fake-kubelet {ours_rise:.1f} s", end="; ")
        print(f"its end: kubelet {theirs_fall:.1f} s, fake-kubelet {ours_fall:.1f} s")
    assert ours_rise <= theirs_rise
