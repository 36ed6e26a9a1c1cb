"""Many pods on one node: how long until all of them run, how long until all are gone, and what that costs.

`python -m tests.bench.pods --pods 500` prints a table in Markdown. The pods are bound to the node while it is away, so
that all of them wait for it at once: no scheduler, no controller is measured. With `--scheduled`, a real scheduler
brings as many to fake-kubelet, too, and the time counts from the last that it has bound. With `--kwok`, KWOK follows
on the same control plane (it is built with Go at the first time); with `--kubelet`, a real kubelet, which needs root.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.proc import footprint
from tests.cluster import build
from tests.cluster.agent_process import AgentProcess
from tests.cluster.command import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Process
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually

_WITHIN_SECONDS = 180.0
KWOK = build.Toolset(
    title="KWOK",
    folder=Path(__file__).parent / "kwok",
    cache="kwok",
    pinned="sigs.k8s.io/kwok",
    version_package="k8s.io/client-go/pkg/version",
    minutes=3,
    programs=("kwok",),
)


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
    parser.add_argument("--kwok", action="store_true", help="measure KWOK, too")
    parser.add_argument("--kubelet", action="store_true", help="measure a real kubelet, too")
    parser.add_argument("--scheduled", action="store_true", help="let a scheduler bring pods to fake-kubelet, too")
    options = parser.parse_args()
    if options.kwok:
        build.built(KWOK)  # not while something is measured
    subjects = [ours, *([_kwok] if options.kwok else []), *([_kubelet] if options.kubelet else [])]
    with tempfile.TemporaryDirectory() as folder, roomy(Path(folder)) as plane:
        results = [_measured(plane, options.pods, *subject(plane, Path(folder))) for subject in subjects]
        print(_table(results, options.pods))
        if options.scheduled:
            seconds = _scheduled(plane, options.pods, *ours(plane, Path(folder)))
            print(f"\n{options.pods} pods run {seconds:.1f} s after the last of them was scheduled")


Subject = tuple[str, Callable[[], int], Callable[[], object]]


def roomy(folder: Path) -> ControlPlane:
    """A control plane that gives each node a range of 4096 addresses; by default it has room for 250 pods."""
    more = {"kube-controller-manager": ["--node-cidr-mask-size=20"]}
    return ControlPlane(folder / "c", binaries=build.binaries(build=False), extra_args=more)


def ours(plane: ControlPlane, folder: Path) -> Subject:
    """fake-kubelet, by the name of its node, and how it is started and stopped."""
    flags = (f"--kubeconfig={plane.node_kubeconfig('ours')}", "--hostname-override=ours", "--healthz-port=0")
    return "ours", *_verbs(AgentProcess(*flags, "--max-pods=2000", log=folder / "agent.log"))


def _kwok(plane: ControlPlane, folder: Path) -> Subject:
    """KWOK as released: its stages are those of its own `stage-fast`, which the binary does not bring along."""
    binary = build.built(KWOK) / "kwok"
    source = run(["go", "-C", str(KWOK.folder), "list", "-m", "-f", "{{.Dir}}", KWOK.pinned]).strip()
    stages = folder / "stages.yaml"
    stages.write_text(plane.kubectl("kustomize", f"{source}/kustomize/stage/fast"))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kwok"}}
    plane.kubectl("create", "-f", "-", input=json.dumps(node))
    flags = (f"--kubeconfig={plane.admin_kubeconfig}", f"--config={stages}", "--manage-single-node=kwok")
    lease = "--node-lease-duration-seconds=40"
    kwok = Process("kwok", [str(binary), *flags, lease, "--node-ip=127.0.0.1"], log=folder / "kwok.log")
    return "kwok", *_verbs(kwok)


def _kubelet(plane: ControlPlane, folder: Path) -> Subject:
    if os.geteuid() != 0:
        sys.exit("the real kubelet needs root")
    (folder / "k").mkdir()
    return "kubelet", *_verbs(RealKubelet(plane, "kubelet", folder / "k", config={"maxPods": 2000}))


def _verbs(program: Process | RealKubelet) -> tuple[Callable[[], int], Callable[[], object]]:
    def start() -> int:
        program.start()
        return program.pid

    return start, program.stop


def _measured(
    plane: ControlPlane, count: int, name: str, start: Callable[[], int], stop: Callable[[], object]
) -> Result:
    start()
    wait_until_ready(plane, name)
    stop()
    # Each KWOK has an identity of its own, and would wait 40 s for the lease of the one before to expire.
    plane.kubectl("delete", "lease", name, "--namespace=kube-node-lease", "--ignore-not-found")
    tell(f"{name}: binding {count} pods")
    plane.kubectl("create", "-f", "-", input=pods(name, range(count)))
    began = time.monotonic()
    pid = start()
    eventually(lambda: len(names(plane, name, phase="Running")) > 0, within=_WITHIN_SECONDS, every=0.1)
    before = footprint(pid)
    eventually(lambda: len(names(plane, name, phase="Running")) == count, within=_WITHIN_SECONDS, every=0.2)
    running, after = time.monotonic() - began, footprint(pid)
    tell(f"{name}: all run after {running:.1f} s")
    began = time.monotonic()
    delete_all(plane, name)
    eventually(lambda: not names(plane, name), within=_WITHIN_SECONDS, every=0.2)
    result = Result(name, running, after.cpu_ms, time.monotonic() - began, before.rss_kib, footprint(pid).rss_kib)
    stop()
    return result


def _scheduled(
    plane: ControlPlane, count: int, name: str, start: Callable[[], int], stop: Callable[[], object]
) -> float:
    """Seconds from the moment when the scheduler has bound the last pod until all run."""
    start()
    wait_until_ready(plane, name)
    plane.kubectl("create", "-f", "-", input=pods(name, range(count), bound=False))
    bound = ("get", "pods", f"--field-selector=spec.nodeName={name}", "--output=name")
    eventually(lambda: len(plane.kubectl(*bound).split()) == count, within=_WITHIN_SECONDS)
    began = time.monotonic()
    eventually(lambda: len(names(plane, name, phase="Running")) == count, within=_WITHIN_SECONDS)
    seconds = time.monotonic() - began
    delete_all(plane, name)
    eventually(lambda: not names(plane, name), within=_WITHIN_SECONDS, every=0.5)
    stop()
    return seconds


def wait_until_ready(plane: ControlPlane, name: str) -> None:
    """Return when the node takes pods."""
    plane.kubectl("wait", "--for=create", f"node/{name}", "--timeout=60s")
    plane.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=60s")
    eventually(lambda: plane.get("serviceaccount", "default", "default"))


def pods(name: str, numbers: Iterable[int], *, bound: bool = True) -> str:
    """Pods bound to the node, or for the scheduler to bind to it, as a manifest."""
    place = {"nodeName": name} if bound else {"nodeSelector": {"kubernetes.io/hostname": name}}
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", "labels": {"bench": name}},
            "spec": {**place, "containers": [{"name": "main", "image": "pause:1"}]},
        }
        for number in numbers
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def names(plane: ControlPlane, name: str, *, phase: str = "") -> list[str]:
    """The node's pods, or those in one phase."""
    fields = [f"--field-selector=status.phase={phase}"] if phase else []
    return plane.kubectl("get", "pods", f"--selector=bench={name}", *fields, "--output=name").split()


def delete_all(plane: ControlPlane, name: str) -> None:
    """Ask for the deletion of the node's pods, as a collection: kubectl would send a request for each."""
    plane.kubectl("delete", "--raw", f"/api/v1/namespaces/default/pods?labelSelector=bench%3D{name}")


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


def tell(text: str) -> None:
    """Say how far it is, beside the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
