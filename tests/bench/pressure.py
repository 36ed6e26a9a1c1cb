"""How soon pressure is told: real shortage of memory, processes and disk, made and taken back, seen at the API server.

`python -m tests.bench.pressure [--times 10]` needs root and Go. Each time is that between the shortage, or its end, and
the watch event that tells it. The kubelet and fake-kubelet run side by side, with the same thresholds and one disk.
It fails where fake-kubelet needs longer to tell of pressure than it may.
"""

import argparse
import math
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from tests.bench.told import Told
from tests.cluster import build
from tests.cluster.agent_process import AgentProcess, apart
from tests.cluster.control_plane import ControlPlane
from tests.cluster.pressure import KINDS, Supplies, small_disk
from tests.cluster.real_kubelet import RealKubelet

_BUDGET_SECONDS = 2.0  # from the shortage to the API server, 95 of 100 times
_ROUND_SECONDS = 10.0  # of a kubelet: how often it looks, and tells
_NAMES = {"kubelet": "told-by-kubelet", "fake-kubelet": "told-by-us"}
_BEGAN, _ENDED = "it began", "it ended (transition period 1 s)"

Found = dict[tuple[str, str, str], list[float]]
"""Seconds by condition, program, and what happened."""


def measure(cluster: ControlPlane, disk: Path, directory: Path, times: int) -> Found:
    """Seconds until the beginning and the end of each pressure were told."""
    found: Found = {}
    with ExitStack() as stack:
        supplies = stack.enter_context(Supplies(directory, disk))
        config = {"evictionHard": dict(supplies.thresholds), "evictionPressureTransitionPeriod": "1s"}
        kubelet = RealKubelet(cluster, _NAMES["kubelet"], disk, config=config)
        stack.enter_context(kubelet)
        ours = _NAMES["fake-kubelet"]
        own = ["--kubeconfig", str(cluster.node_kubeconfig(ours)), "--hostname-override", ours, "--healthz-port=0"]
        agent = AgentProcess(*kubelet.arguments, *own, *apart(directory / "ours"), log=directory / "agent.log")
        stack.callback(agent.stop)
        agent.start()
        told = stack.enter_context(Told(cluster, list(_NAMES.values())))
        _note({}, told, "False", dict.fromkeys(KINDS, 0.0), "")
        for number in range(times):
            print(f"{number + 1} of {times}", file=sys.stderr, flush=True)
            _pause()
            with supplies.shortage() as since:
                _note(found, told, "True", since, _BEGAN)
                _pause()
                end = time.monotonic()
            _note(found, told, "False", dict.fromkeys(KINDS, end), _ENDED)
    return found


def _pause() -> None:
    """Let the next thing happen at any moment of a kubelet's round, and not always just after it has told the last."""
    time.sleep(_ROUND_SECONDS * random.random())  # noqa: S311


def _note(found: Found, told: Told, status: str, since: dict[str, float], what: str) -> None:
    for program, name in _NAMES.items():
        for kind, seconds in told.after(name, status, since).items():
            found.setdefault((kind, program, what), []).append(seconds)


def percentile(values: list[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def main() -> int:
    """Print the table; 1 where fake-kubelet was too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10)
    times = parser.parse_args().times
    with (
        tempfile.TemporaryDirectory(prefix="fk-") as folder,
        small_disk(Path(folder), mebibytes=64) as disk,
        ControlPlane(Path(folder) / "cp", binaries=build.binaries()) as cluster,
    ):
        found = measure(cluster, disk, Path(folder), times)
    print("| told at the API server after (s) | median | p95 | worst |\n|---|---:|---:|---:|")
    for (kind, program, what), values in sorted(found.items()):
        row = f"{median(values):.1f} | {percentile(values, 0.95):.1f} | {max(values):.1f}"
        print(f"| {program}, {kind}, {what} | {row} |")
    slowest = max(percentile(found[kind, "fake-kubelet", _BEGAN], 0.95) for kind in KINDS)
    print(f"\np95 of the slowest condition: {slowest:.2f} s; the budget is {_BUDGET_SECONDS} s")
    return 0 if slowest <= _BUDGET_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
