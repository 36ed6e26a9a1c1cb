"""How soon pressure is told: real shortage of processes, made and taken back, seen at the API server.

`python -m tests.bench.pressure [--times 10]` needs root and Go. Each time is that between the shortage, or its end, and
the watch event that tells it. The kubelet and fake-kubelet run side by side, with the same thresholds.
"""

import argparse
import asyncio
import math
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from agent.adapters.host import LinuxHost
from agent.core.config import Config
from agent.core.eviction import observe
from tests.bench.api import watch_node
from tests.cluster import build
from tests.cluster.agent_process import AgentProcess, apart
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.parity.pressure import waiting_threads

_STEP = 500
_NAMES = {"kubelet": "told-by-kubelet", "fake-kubelet": "told-by-us"}


class Told:
    """The last status of PIDPressure of each node, and when it was told."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, float]] = {}

    def watch(self, cluster: ControlPlane, program: str, seconds: int) -> None:
        """Follow a node until the watch ends; runs in a thread of its own."""
        with watch_node(cluster, _NAMES[program], seconds=seconds) as states:
            for node in states:
                status = _pid_pressure(node)
                if self._seen.get(program, ("", 0))[0] != status:
                    self._seen[program] = (status, time.monotonic())

    def since(self, program: str, status: str, start: float) -> float:
        """Seconds from the start until a node told this status, waiting for it if need be."""
        _, at = eventually(
            lambda: (seen := self._seen.get(program)) and seen[0] == status and seen, within=60, every=0.02
        )
        return max(0.0, at - start)


def _pid_pressure(node: dict[str, Any]) -> str:
    conditions = node.get("status", {}).get("conditions", [])
    return next((c["status"] for c in conditions if c["type"] == "PIDPressure"), "")


def measure(cluster: ControlPlane, directory: Path, times: int) -> dict[tuple[str, str], list[float]]:
    """Seconds until the rise and the fall of pressure were told, by program."""
    available = observe(asyncio.run(LinuxHost(Config(node_name="n")).snapshot()))["pid.available"].available
    config = {"evictionHard": {"pid.available": str(available - _STEP)}, "evictionPressureTransitionPeriod": "1s"}
    kubelet = RealKubelet(cluster, _NAMES["kubelet"], directory, config=config)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    told = Told()
    with ExitStack() as stack:
        stack.enter_context(kubelet)
        ours = _NAMES["fake-kubelet"]
        own = ["--kubeconfig", str(cluster.node_kubeconfig(ours)), "--hostname-override", ours, "--healthz-port=0"]
        agent = AgentProcess(*kubelet.arguments, *own, *apart(directory / "ours"), log=directory / "agent.log")
        stack.callback(agent.stop)
        agent.start()
        for program in _NAMES:
            threading.Thread(target=told.watch, args=(cluster, program, 60 * times + 60), daemon=True).start()
        for program in _NAMES:
            told.since(program, "False", 0)
        for number in range(times):
            print(f"{number + 1} of {times}", file=sys.stderr, flush=True)
            with waiting_threads(2 * _STEP):
                start = time.monotonic()
                for program in _NAMES:
                    found[program, "rise"].append(told.since(program, "True", start))
            start = time.monotonic()
            for program in _NAMES:
                found[program, "fall"].append(told.since(program, "False", start))
    return found


def percentile(values: list[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="fk-") as folder:
        directory = Path(folder)
        (directory / "k").mkdir()
        with ControlPlane(directory / "cp", binaries=build.binaries()) as cluster:
            found = measure(cluster, directory / "k", times)
    print("| PIDPressure at the API server after (s) | median | p95 | worst |\n|---|---:|---:|---:|")
    for (program, edge), values in sorted(found.items()):
        row = f"{median(values):.1f} | {percentile(values, 0.95):.1f} | {max(values):.1f}"
        print(f"| {program}, {'it began' if edge == 'rise' else 'it ended (transition period 1 s)'} | {row} |")


if __name__ == "__main__":
    main()
