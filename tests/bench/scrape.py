"""What a scrape costs the node: `python -m tests.bench.scrape [--times 100]`, beside a real kubelet; needs root and Go.

CPU time of the whole process for each answer, over one connection that stays open, less what it costs anyway. It fails
if an answer of ours costs more than 5 ms, or /metrics/resource more than 25 ms with 500 pods that use something.
"""

import argparse
import http.client
import ssl
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.proc import footprint
from tests.cluster import build
from tests.cluster.api import PODS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually
from tests.parity.scrape import OURS, Served, side_by_side

_PATHS = (
    "/healthz",
    "/metrics/resource",
    "/stats/summary?only_cpu_and_memory=true",
    "/stats/summary",
    "/metrics/cadvisor",
    "/metrics/probes",
    "/metrics",
)
_IDLE_SECONDS = 5.0
_MOST_MS = 5.0
_PODS, _POD_PATHS, _MOST_MS_WITH_PODS = 500, ("/metrics/resource", "/stats/summary", "/metrics/cadvisor"), 25.0
_USAGE = {"fake-kubelet.dev/usage-cpu": "sine(100m,400m,1h)", "fake-kubelet.dev/usage-memory": "ramp(16Mi,64Mi,1h)"}


def cost_ms(cluster: ControlPlane, served: Served, path: str, times: int, idle: float) -> float:
    """CPU milliseconds of one answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # both serve with what they made themselves
    context.load_cert_chain(cluster.admin_cert, cluster.admin_key)
    connection = http.client.HTTPSConnection("127.0.0.1", served.port, timeout=10, context=context)
    try:
        for _ in range(5):  # imports, caches, handshake
            _ask(connection, path)
        before, began = footprint(served.pid).cpu_ms, time.monotonic()
        for _ in range(times):
            _ask(connection, path)
        return (footprint(served.pid).cpu_ms - before - idle * (time.monotonic() - began)) / times
    finally:
        connection.close()


def _ask(connection: http.client.HTTPSConnection, path: str) -> None:
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, path


def _idle(served: Served) -> float:
    """CPU milliseconds in a second without anybody asking."""
    before = footprint(served.pid).cpu_ms
    time.sleep(_IDLE_SECONDS)
    return (footprint(served.pid).cpu_ms - before) / _IDLE_SECONDS


def _add_pods(cluster: ControlPlane, served: Served) -> None:
    """Put pods on our node, and wait until they run."""
    resources = {"limits": {"cpu": "300m"}, "requests": {"cpu": "1m"}}
    for number in range(_PODS):
        metadata = {"name": f"pod-{number}", "namespace": "default", "annotations": _USAGE}
        spec = {
            "nodeName": OURS,
            "automountServiceAccountToken": False,
            "hostNetwork": True,  # a node has 254 addresses for pods
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "pause:1", "resources": resources}],
        }
        cluster.api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    eventually(lambda: _running(served) == _PODS, within=120, every=1)


def _running(served: Served) -> int:
    return sum(name.startswith("pod_cpu_usage") for name in served.page("/metrics/resource").numbers)


def _table(cluster: ControlPlane, directory: Path, times: int) -> dict[str, float]:
    """Print it; what each of our answers costs."""
    ours = {}
    with side_by_side(cluster, directory, f"--max-pods={_PODS}") as both:
        idles = [_idle(served) for served in both]
        print("| CPU of one answer (ms) | kubelet | fake-kubelet |\n|---|---:|---:|")
        for path in _PATHS:
            costs = [cost_ms(cluster, served, path, times, idle) for served, idle in zip(both, idles, strict=True)]
            print(f"| {path} | {' | '.join(f'{cost:.2f}' for cost in costs)} |", flush=True)
            ours[path] = costs[-1]
        _add_pods(cluster, both[-1])
        for path in _POD_PATHS:
            cost = cost_ms(cluster, both[-1], path, times, _idle(both[-1]))
            print(f"| {path}, {_PODS} pods | - | {cost:.2f} |", flush=True)
            ours[f"{path}, {_PODS} pods"] = cost
    return ours


def main() -> None:
    """Print a table of milliseconds; the exit code is 1 if one of ours is too many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=100)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="fk") as folder:
        directory = Path(folder)
        try:
            with ControlPlane(directory / "cp", binaries=build.binaries()) as cluster:
                costs = _table(cluster, directory, times)
        except build.NoControlPlane as reason:
            sys.exit(f"no control plane to test against: {reason}")
    dear = [path for path, cost in costs.items() if cost > _MOST_MS and "pods" not in path]
    if dear:
        sys.exit(f"more than {_MOST_MS:g} ms: {', '.join(dear)}")
    if costs[f"{_POD_PATHS[0]}, {_PODS} pods"] > _MOST_MS_WITH_PODS:
        sys.exit(f"{_POD_PATHS[0]} with {_PODS} pods: more than {_MOST_MS_WITH_PODS:g} ms")


if __name__ == "__main__":
    main()
