"""Stock metrics-server asks our node: `kubectl top node` shows what /proc shows over the same seconds."""

import secrets
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from agent.core.quantity import Quantity
from agent.core.times import parse_seconds
from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NODES, PODS, SIGNING_REQUESTS
from tests.cluster.command import CommandFailed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.metrics_server import MetricsServer, check_node_metrics
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

NAME = f"top-{secrets.token_hex(3)}"
POD = f"{NAME}-pod"
TOLERANCE = 0.1


class Sample(NamedTuple):
    """What /proc said at a moment."""

    at_seconds: float
    cpu_seconds: float
    memory_bytes: int


class Recorder(threading.Thread):
    """Keeps looking at /proc, ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[Sample] = []
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.wait(0.1):
            self.samples.append(_look())

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()

    def at(self, moment: float) -> Sample:
        """The first sample from a moment on."""
        return self.samples[bisect_left(self.samples, (moment,))]

    def cores(self, begin: float, end: float) -> float:
        """How many cores were busy between two moments."""
        first, last = self.at(begin), self.at(end)
        return (last.cpu_seconds - first.cpu_seconds) / (last.at_seconds - first.at_seconds)


def _look() -> Sample:
    cpu = psutil.cpu_times()
    busy = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    kib = {line[0].rstrip(":"): int(line[1]) for line in lines}
    # What a kubelet calls the working set: all that is used but the page cache that nobody looked at lately
    used = kib["AnonPages"] + kib["Cached"] + kib["Buffers"] - kib["Inactive(file)"]
    return Sample(time.time(), busy, used * 1024)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    recorder.start()
    yield recorder
    recorder.stop()


@pytest.fixture
def cluster(control_plane: ControlPlane, metrics_server: Path, tmp_path: Path) -> Iterator[MetricsServer]:
    """A node of ours with a serving certificate of the cluster, one burning core, and a metrics-server."""
    burner = Process("burner", [sys.executable, "-c", "while True: pass"], log=tmp_path / "burner.log")
    agent = AgentProcess(*_flags(control_plane, tmp_path), log=tmp_path / "agent.log")
    with ExitStack() as running:
        for process in (burner, agent):
            running.callback(process.stop)
            process.start()
        _approve(control_plane)
        eventually(lambda: "Loaded serving certificate" in agent.log_text())
        yield running.enter_context(MetricsServer(control_plane, tmp_path, binary=metrics_server))
    control_plane.api.delete(f"{NODES}/{NAME}")


def _flags(control_plane: ControlPlane, folder: Path) -> list[str]:
    """A node with the defaults of fake-kubelet, and the serverTLSBootstrap that metrics-server wants."""
    address = next(
        found.address
        for name, addresses in psutil.net_if_addrs().items()
        for found in addresses
        if name != "lo" and found.family.name == "AF_INET"
    )
    flags = {
        "kubeconfig": control_plane.node_kubeconfig(NAME),
        "hostname-override": NAME,
        "node-ip": address,
        "address": address,
        "port": free_ports(1)[0],
        "healthz-port": 0,
        "cert-dir": folder / "pki",
        "root-dir": folder / "root",
        "rotate-server-certificates": "true",
    }
    return [f"--{flag}={value}" for flag, value in flags.items()]


def _approve(control_plane: ControlPlane) -> None:
    """Do as the administrator of a cluster does with the serving certificate of a node; those before are approved."""
    serving = f"{SIGNING_REQUESTS}?fieldSelector=spec.signerName=kubernetes.io/kubelet-serving"
    ours = f"system:node:{NAME}"
    found = eventually(
        lambda: [
            one["metadata"]["name"]
            for one in control_plane.api.items(serving)
            if one["spec"]["username"] == ours and not one.get("status", {}).get("conditions")
        ]
    )
    control_plane.kubectl("certificate", "approve", *found)


@pytest.mark.slow
def test_kubectl_top_agrees_with_proc_while_a_core_burns(
    control_plane: ControlPlane, cluster: MetricsServer, recorder: Recorder
) -> None:
    begun = time.time()
    metrics, (_, cpu, _, memory, _) = eventually(lambda: _told_since(control_plane, cluster, begun), every=0.5)
    check_node_metrics(metrics)
    cores, used = Quantity.parse(cpu).millis / 1000, Quantity.parse(memory).value

    end, seconds = datetime.fromisoformat(metrics["timestamp"]).timestamp(), parse_seconds(metrics["window"])
    ends = [end + tenth / 10 for tenth in range(11)]  # it tells the end to the second
    in_proc = [recorder.cores(moment - seconds, moment) for moment in ends]
    print(f"cores: kubectl {cores}, /proc {min(in_proc):.3f} to {max(in_proc):.3f}")
    assert min(in_proc) * (1 - TOLERANCE) <= cores <= max(in_proc) * (1 + TOLERANCE)
    assert cores > 0.7
    in_proc = [recorder.at(moment).memory_bytes for moment in ends]
    print(f"bytes: kubectl {used}, /proc {min(in_proc)} to {max(in_proc)}")
    assert min(in_proc) * (1 - TOLERANCE) <= used <= max(in_proc) * (1 + TOLERANCE)


@pytest.mark.slow
def test_kubectl_top_shows_what_the_containers_of_a_pod_seem_to_use(
    control_plane: ControlPlane, cluster: MetricsServer
) -> None:
    eventually(lambda: control_plane.get("serviceaccount", "default", "default"))
    control_plane.api.create(PODS, _pod_that_uses_something())
    try:
        rows = eventually(lambda: _top_containers(control_plane), within=120, every=1)
    finally:
        control_plane.api.delete(f"{PODS}/{POD}?gracePeriodSeconds=0")
    print(rows)
    # What main uses is cut off at its limit; side says its own, and its memory as KWOK would read it.
    # And what idle uses is little, but not nothing, or metrics-server would not show the pod.
    assert rows == {"main": ["300m", "64Mi"], "side": ["120m", "32Mi"], "idle": ["1m", "0Mi"]}


def _pod_that_uses_something() -> dict[str, Any]:
    annotations = {
        "fake-kubelet.dev/usage-cpu": "2",
        "usage-cpu.fake-kubelet.dev/side": "60% of request",
        "usage-cpu.fake-kubelet.dev/idle": "0",
        "usage-memory.fake-kubelet.dev/main": "64Mi",
        "usage-memory.fake-kubelet.dev/idle": "60% of request",
        "kwok.x-k8s.io/usage-memory": "32Mi",
    }
    containers = [
        {"name": "main", "image": "nginx", "resources": {"limits": {"cpu": "300m"}, "requests": {"cpu": "1m"}}},
        {"name": "side", "image": "nginx", "resources": {"requests": {"cpu": "200m"}}},
        {"name": "idle", "image": "nginx"},
    ]
    spec = {"nodeName": NAME, "automountServiceAccountToken": False, "containers": containers}
    metadata = {"name": POD, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _top_containers(control_plane: ControlPlane) -> dict[str, list[str]] | None:
    """What kubectl says each container uses; nothing while metrics-server does not know the pod."""
    try:
        text = control_plane.kubectl("top", "pod", POD, "--containers", "--no-headers")
    except CommandFailed:
        return None
    return {container: usage for _, container, *usage in map(str.split, text.splitlines())}


def _told_since(
    control_plane: ControlPlane, cluster: MetricsServer, begun: float
) -> tuple[dict[str, str], list[str]] | None:
    """What metrics-server knows, and what kubectl says of the same window."""
    if not (metrics := _measured_since(cluster, begun)):
        return None
    words = control_plane.kubectl("top", "node", NAME, "--no-headers").split()
    return (metrics, words) if cluster.node(NAME)["timestamp"] == metrics["timestamp"] else None


def _measured_since(cluster: MetricsServer, begun: float) -> dict[str, str] | None:
    """What metrics-server knows, once all of it was measured under our eyes."""
    metrics = cluster.node(NAME)
    end = datetime.fromisoformat(metrics["timestamp"]).timestamp()
    return metrics if end - parse_seconds(metrics["window"]) > begun + 1 and time.time() > end + 1.5 else None
