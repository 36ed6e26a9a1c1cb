"""Many pods on one node: how long until all of them run, how long until all are gone, and what that costs.

`python -m tests.bench.pods --pods 500` prints a table in Markdown. The pods are bound to the node while it is away, so
that all of them wait for it at once: no scheduler, no controller is measured. With `--kubelet` a real one follows; it
needs root.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.proc import footprint
from tests.cluster import build
from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually

_WITHIN_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Result:
    """What one program took."""

    name: str
    running_seconds: float
    running_cpu_ms: float
    gone_seconds: float
    rss_before_kib: int
    rss_kib: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--kubelet", action="store_true", help="measure a real kubelet, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # A node's own range has room for 250 pods by default.
        more = {"kube-controller-manager": ["--node-cidr-mask-size=20"]}
        with ControlPlane(Path(folder) / "c", binaries=build.binaries(build=False), extra_args=more) as plane:
            subjects = [_ours(plane, Path(folder)), *([_kubelet(plane, Path(folder))] if options.kubelet else [])]
            print(_table([_measured(plane, options.pods, *subject) for subject in subjects], options.pods))


Subject = tuple[str, Callable[[], int], Callable[[], object]]


def _ours(plane: ControlPlane, folder: Path) -> Subject:
    flags = (f"--kubeconfig={plane.node_kubeconfig('ours')}", "--hostname-override=ours", "--healthz-port=0")
    agent = AgentProcess(*flags, "--max-pods=2000", log=folder / "agent.log")

    def start() -> int:
        agent.start()
        return agent.pid

    return "ours", start, agent.stop


def _kubelet(plane: ControlPlane, folder: Path) -> Subject:
    if os.geteuid() != 0:
        sys.exit("the real kubelet needs root")
    (folder / "k").mkdir()
    kubelet = RealKubelet(plane, "kubelet", folder / "k", config={"maxPods": 2000})

    def start() -> int:
        kubelet.start()
        return kubelet.pid

    return "kubelet", start, kubelet.stop


def _measured(
    plane: ControlPlane, count: int, name: str, start: Callable[[], int], stop: Callable[[], object]
) -> Result:
    start()
    plane.kubectl("wait", "--for=create", f"node/{name}", "--timeout=60s")
    plane.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=60s")
    stop()
    eventually(lambda: plane.get("serviceaccount", "default", "default"))
    _tell(f"{name}: binding {count} pods")
    plane.kubectl("create", "-f", "-", input=_pods(name, count))
    began = time.monotonic()
    pid = start()
    eventually(lambda: len(_names(plane, name, phase="Running")) > 0, within=_WITHIN_SECONDS, every=0.1)
    before = footprint(pid)
    eventually(lambda: len(_names(plane, name, phase="Running")) == count, within=_WITHIN_SECONDS, every=0.2)
    running, after = time.monotonic() - began, footprint(pid)
    _tell(f"{name}: all run after {running:.1f} s")
    began = time.monotonic()
    plane.kubectl("delete", "pods", f"--selector=bench={name}", "--wait=false")
    eventually(lambda: not _names(plane, name), within=_WITHIN_SECONDS, every=0.2)
    result = Result(name, running, after.cpu_ms, time.monotonic() - began, before.rss_kib, footprint(pid).rss_kib)
    stop()
    return result


def _pods(name: str, count: int) -> str:
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", "labels": {"bench": name}},
            "spec": {"nodeName": name, "containers": [{"name": "main", "image": "pause:1"}]},
        }
        for number in range(count)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _names(plane: ControlPlane, name: str, *, phase: str = "") -> list[str]:
    fields = [f"--field-selector=status.phase={phase}"] if phase else []
    return plane.kubectl("get", "pods", f"--selector=bench={name}", *fields, "--output=name").split()


def _table(results: Sequence[Result], count: int) -> str:
    lines = [
        f"| {count} pods | all Running after | CPU until then | all gone after | RSS at first, at the end |",
        "|---|---|---|---|---|",
    ]
    for one in results:
        sizes = f"{one.rss_before_kib / 1024:.1f}, {one.rss_kib / 1024:.1f} MiB"
        cpu = f"{one.running_cpu_ms / 1000:.1f} s"
        lines.append(f"| {one.name} | {one.running_seconds:.1f} s | {cpu} | {one.gone_seconds:.1f} s | {sizes} |")
    return "\n".join(lines)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
