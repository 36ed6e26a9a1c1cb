"""What a fleet costs beside KWOK: `make bench-fleet`, or `python -m tests.bench.fleet --counts 100,1000`.

Both run one after the other on the same real control plane, with leases of 40 s: KWOK with the stages of its own
`stage-fast` (it has `heartbeat-with-lease`), fake-kubelet with its defaults. The time to all Ready is taken from the
start of the program: with Nodes that exist before, bare ones that `kubectl create` has made for either of them, and
with Nodes that are created meanwhile, ours by the fleet, KWOK's by `kubectl create`, as KWOK creates none. CPU and
renewals are those of a while after all Nodes that existed are Ready. With `--check`, the targets of 1,000 nodes decide
about the exit code.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.core.nodestatus import is_ready
from agent.core.times import exact_time
from tests.bench.pods import KWOK, tell
from tests.bench.proc import footprint
from tests.cluster import build
from tests.cluster.api import NODES
from tests.cluster.command import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_EVENTS = "/api/v1/namespaces/default/events"
_CSINODES = "/apis/storage.k8s.io/v1/csinodes"
_ANNOTATIONS = {"kwok.x-k8s.io/node": "fake"}
_LABELS = {"fake-kubelet.dev/fleet": "fleet"}
_PERIOD_SECONDS = 10.0
_LATE_SECONDS = 15.0  # a lease of 40 s is renewed each 10 s: one that is older has missed a renewal
_SAMPLE_SECONDS = 2.0
_WITHIN_SECONDS = 900.0
_TARGETS = {"cpu": 0.4, "rss": 1.0, "ready": 1.0, "created": 1.0}  # ours, in parts of KWOK's


@dataclass(frozen=True, slots=True)
class Result:
    """What one program took for so many nodes."""

    name: str
    count: int
    ready_seconds: float  # with Nodes that exist
    created_seconds: float  # with Nodes that are created meanwhile
    cpu_ms: float  # for each renewal of a lease
    renewals_per_second: float
    rss_kib: int
    oldest_seconds: float
    missed: int  # samples of leases that were late


def main() -> int:
    """Measure and print; 1 where a target is missed and --check was given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", default="100,1000")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each is watched after all are Ready")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    kwok = build.built(KWOK)  # not while something is measured
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        # Nodes without pod CIDRs: by default there are 256 ranges.
        more = {"kube-controller-manager": ["--allocate-node-cidrs=false"]}
        with ControlPlane(folder / "c", binaries=build.binaries(build=False), extra_args=more) as plane:
            stages = _stages(plane, folder)
            for count in map(int, options.counts.split(",")):
                results.append(_kwok(plane, count, [str(kwok / "kwok"), f"--config={stages}"], options.seconds))
                results.append(_ours(plane, count, options.seconds))
    print(_table(results))
    misses = _misses(results)
    print("\n".join(misses))
    return 1 if misses and options.check else 0


def _stages(plane: ControlPlane, folder: Path) -> Path:
    """KWOK's own stages; the binary does not bring them along."""
    source = run(["go", "-C", str(KWOK.folder), "list", "-m", "-f", "{{.Dir}}", KWOK.pinned]).strip()
    stages = folder / "stages.yaml"
    stages.write_text(plane.kubectl("kustomize", f"{source}/kustomize/stage/fast"))
    return stages


def _kwok(plane: ControlPlane, count: int, argv: Sequence[str], seconds: float) -> Result:
    nodes = _nodes("kwok", count, annotations=_ANNOTATIONS)
    selector = "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
    flags = [f"--kubeconfig={plane.admin_kubeconfig}", selector, "--node-lease-duration-seconds=40"]
    process = Process("kwok", [*argv, *flags], log=plane.directory / "kwok.log")
    _create(plane, nodes)
    result = _measured(plane, "kwok", count, process, seconds)
    _end(plane, process)
    created_seconds = _seconds_to_ready(plane, count, process, lambda: _create(plane, nodes))
    _end(plane, process)
    return _told(replace(result, created_seconds=created_seconds))


def _ours(plane: ControlPlane, count: int, seconds: float) -> Result:
    fleet = [sys.executable, "-m", "agent", "fleet", f"--count={count}", "--name-template=ours-{index}"]
    flags = [f"--kubeconfig={plane.admin_kubeconfig}", "--healthz-port=0"]
    process = Process("fleet", [*fleet, *flags], log=plane.directory / "fleet.log")
    _create(plane, _nodes("ours", count, labels=_LABELS))
    result = _measured(plane, "fake-kubelet", count, process, seconds)
    _end(plane, process)
    created_seconds = _seconds_to_ready(plane, count, process)
    _end(plane, process)
    return _told(replace(result, created_seconds=created_seconds))


def _nodes(name: str, count: int, **metadata: Mapping[str, str]) -> str:
    """So many Nodes that nobody has reported on, for kubectl."""
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"{name}-{index}", **metadata}}
        for index in range(count)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})


def _create(plane: ControlPlane, nodes: str) -> None:
    plane.kubectl("create", "-f", "-", input=nodes)


def _end(plane: ControlPlane, process: Process) -> None:
    """Stop a program, and delete what it has in the cluster."""
    process.stop()
    tell(process.log_tail(3))
    for kind in (NODES, _CSINODES, _LEASES):
        plane.kubectl("delete", "--raw", kind)


def _seconds_to_ready(
    plane: ControlPlane, count: int, process: Process, create: Callable[[], None] = lambda: None
) -> float:
    """Start a program, and return how long it took until all Nodes were Ready."""
    began = time.monotonic()
    process.start()
    create()
    eventually(lambda: _ready(plane) == count, within=_WITHIN_SECONDS, every=0.5)
    return time.monotonic() - began


def _measured(plane: ControlPlane, name: str, count: int, process: Process, seconds: float) -> Result:
    tell(f"{name}: starting with {count} nodes")
    ready_seconds = _seconds_to_ready(plane, count, process)
    tell(f"{name}: all {count} are Ready after {ready_seconds:.1f} s")
    _settle(plane)
    before, first, since = footprint(process.pid), _versions(plane), time.monotonic()
    oldest, missed, renewals = 0.0, 0, 0
    while time.monotonic() - since < seconds:
        time.sleep(_SAMPLE_SECONDS)
        ages, versions = _ages(plane), _versions(plane)
        oldest, missed = max(oldest, *ages), missed + sum(age > _LATE_SECONDS for age in ages)
        renewals += sum(version != first.get(lease) for lease, version in versions.items())
        first = versions
    after, took = footprint(process.pid), time.monotonic() - since
    cpu_ms = (after.cpu_ms - before.cpu_ms) / max(1, renewals)
    return Result(name, count, ready_seconds, 0.0, cpu_ms, renewals / took, after.rss_kib, oldest, missed)


def _told(result: Result) -> Result:
    tell(f"{_row(result)} load {os.getloadavg()[0]:.1f}")
    return result


def _settle(plane: ControlPlane) -> None:
    """Wait until what came with the start is over, such as events."""
    before = None
    while (now := plane.api.get(f"{_EVENTS}?limit=1")["metadata"].get("remainingItemCount", 0)) != before:
        before = now
        time.sleep(_PERIOD_SECONDS)


def _ready(plane: ControlPlane) -> int:
    return sum(is_ready(node.get("status", {})) for node in plane.api.items(NODES))


def _versions(plane: ControlPlane) -> dict[str, str]:
    return {lease["metadata"]["name"]: lease["metadata"]["resourceVersion"] for lease in _leases(plane)}


def _ages(plane: ControlPlane) -> list[float]:
    now = datetime.now(UTC)
    return [(now - exact_time(lease["spec"]["renewTime"])).total_seconds() for lease in _leases(plane)]


def _leases(plane: ControlPlane) -> list[dict[str, Any]]:
    return plane.api.items(_LEASES)


def _table(results: Sequence[Result]) -> str:
    lines = [
        "| nodes | program | all Ready after, if Nodes exist | created | CPU per renewal | renewals/s | RSS "
        "| oldest lease | late leases seen |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    return "\n".join([*lines, *map(_row, results)])


def _row(one: Result) -> str:
    return (
        f"| {one.count} | {one.name} | {one.ready_seconds:.1f} s | {one.created_seconds:.1f} s | {one.cpu_ms:.3f} ms "
        f"| {one.renewals_per_second:.1f} | {one.rss_kib / 1024:.1f} MiB | {one.oldest_seconds:.1f} s | {one.missed} |"
    )


def _misses(results: Sequence[Result]) -> list[str]:
    """Print ours in parts of KWOK's; what misses a target."""
    pairs = zip(results[::2], results[1::2], strict=True)
    ratios = [
        (ours.count, what, mine / theirs)
        for kwok, ours in pairs
        for what, mine, theirs in (
            ("cpu", ours.cpu_ms, kwok.cpu_ms),
            ("rss", ours.rss_kib, kwok.rss_kib),
            ("ready", ours.ready_seconds, kwok.ready_seconds),
            ("created", ours.created_seconds, kwok.created_seconds),
        )
    ]
    print("\n".join(f"{count} nodes: {what} is {ratio:.2f} x KWOK's" for count, what, ratio in ratios))
    return [f"missed: {what} at {count}" for count, what, ratio in ratios if count >= 1000 and ratio > _TARGETS[what]]


if __name__ == "__main__":
    sys.exit(main())
