"""How long it takes from exec, with nothing but a bootstrap token, to a Ready node: beside a real kubelet, in one run.

`python -m tests.bench.bootstrap` prints a table, and fails if we take more than 1.2 times as long. Needs root.
"""

import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from tests.cluster import build
from tests.cluster.control_plane import ControlPlane
from tests.cluster.machine import Machine
from tests.cluster.node_view import is_ready
from tests.cluster.real_kubelet import RealKubelet

_RUNS = 5
_MOST_RATIO = 1.2
_READY_WITHIN_SECONDS = 60


def seconds_until_ready(start: Callable[[], object], machine: Machine) -> float:
    """From the exec until the API server tells a watcher that the node is Ready."""
    with machine.watch(_READY_WITHIN_SECONDS) as states:
        begin = time.monotonic()
        start()
        if not any(is_ready(node) for node in states):
            raise TimeoutError(f"{machine.name} is not Ready after {_READY_WITHIN_SECONDS} s")
        return time.monotonic() - begin


def kubelet(plane: ControlPlane, folder: Path, name: str, rotate: str) -> float:
    """One start of a real kubelet; its container runtime is there before."""
    machine = _machine(plane, folder, name)
    flags = [
        f"--bootstrap-kubeconfig={machine.bootstrap}",
        f"--kubeconfig={machine.kubeconfig}",
        f"--rotate-certificates={rotate}",
    ]
    real = RealKubelet(plane, name, folder, flags=flags)
    real.prepare()
    try:
        return seconds_until_ready(real.start, machine)
    finally:
        real.stop()


def fake_kubelet(plane: ControlPlane, folder: Path, name: str, rotate: str) -> float:
    """One start of ours."""
    machine = _machine(plane, folder, name)
    try:
        return seconds_until_ready(lambda: machine.start(f"--rotate-certificates={rotate}"), machine)
    finally:
        for process in machine.processes:
            process.stop()


def _machine(plane: ControlPlane, folder: Path, name: str) -> Machine:
    folder.mkdir(parents=True)
    machine = Machine(plane, name, folder)
    machine.give_token()
    return machine


def measured(plane: ControlPlane, folder: Path, rotate: str) -> dict[str, list[float]]:
    """Both in turn, so that both see the same weather on the machine."""
    found: dict[str, list[float]] = {"kubelet": [], "fake-kubelet": []}
    for number in range(_RUNS + 1):
        for name, run in (("kubelet", kubelet), ("fake-kubelet", fake_kubelet)):
            node = f"{name}-{rotate}-{number}"
            took = run(plane, folder / f"{name[0]}{rotate[0]}{number}", node, rotate)
            plane.kubectl("delete", "node", node)
            if number:  # the first of each warms caches, and the signer
                found[name].append(took)
    return found


def main() -> int:
    """Print medians and ranges for both ways to bootstrap."""
    folder, broken = Path(tempfile.mkdtemp(prefix="fkb-")), 0
    print("| token → Ready (s), median (range) | kubelet | fake-kubelet | ratio |\n|---|---:|---:|---:|")
    try:
        with ControlPlane(folder / "plane", binaries=build.binaries(build=False)) as plane:
            for rotate, words in (("false", "at once"), ("true", "in the background")):
                found = measured(plane, folder, rotate)
                cells = [f"{median(runs):.2f} ({min(runs):.2f}-{max(runs):.2f})" for runs in found.values()]
                ratio = median(found["fake-kubelet"]) / median(found["kubelet"])
                print(f"| --rotate-certificates={rotate}, {words} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
                broken += ratio > _MOST_RATIO
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{_RUNS} runs each, in turn; Python {platform.python_version()}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
