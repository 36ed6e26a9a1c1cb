"""The kubelet's API of a fleet, as the API server and metrics-server ask for it, on an embedded cluster."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.nodestatus import is_ready
from agent.core.quantity import Quantity
from tests.cluster.api import NODES, PODS, Answer, Api, Identity
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.fleet_process import FleetProcess
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.slow

NODE_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
METRICS_PATH = "metrics.k8s.io/resource-metrics-path"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        yield cluster.api


Start = Callable[..., FleetProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a fleet with these flags."""
    started: list[FleetProcess] = []

    def start_one(*flags: str) -> FleetProcess:
        started.append(FleetProcess(*flags, f"--kubeconfig={tmp_path / 'kubeconfig'}", log=tmp_path / "fleet.log"))
        started[-1].start()
        return started[-1]

    yield start_one
    for fleet in started:
        fleet.stop()


def ready(api: Api) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in api.items(NODES) if is_ready(node.get("status", {}))}


def kubelet_ports(nodes: dict[str, Any]) -> dict[str, int]:
    return {name: node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] for name, node in nodes.items()}


def add_pod(api: Api, name: str, node: str) -> None:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    eventually(lambda: api.get(f"{PODS}/{name}")["status"]["phase"] == "Running")


def answered(api: Api, path: str) -> Answer:
    """What a kubelet answers; for a moment, it has no serving certificate."""
    return eventually(lambda: api.ask("GET", path, accept="*/*"), lambda found: found.status == 200)


def test_nodes_share_a_port_and_each_has_its_own_logs_and_figures(api: Api, start: Start) -> None:
    (port,) = free_ports(1)
    start("--count=3", f"--port={port}", "--capacity=memory=1Gi")
    nodes = eventually(lambda: ready(api), lambda found: len(found) == 3)
    assert kubelet_ports(nodes) == dict.fromkeys(nodes, port)
    assert len({json.dumps(node["status"]["addresses"][0]) for node in nodes.values()}) == 1
    for name, node in nodes.items():
        assert node["metadata"]["annotations"][METRICS_PATH] == f"/metrics/nodes/{name}/metrics/resource"
        add_pod(api, f"pod-of-{name}", name)
    for name in nodes:
        assert b"container c" in answered(api, f"{PODS}/pod-of-{name}/log").body
        assert (
            b"no containers run" in api.ask("GET", f"{NODES}/{name}/proxy/exec/default/pod-of-{name}/c?output=1").body
        )
    figures = eventually(lambda: api.items(NODE_METRICS), lambda found: len(found) == 3)
    for found in figures:
        assert Quantity.parse(found["usage"]["memory"]).value == 64 * 2**20  # of the node's own memory, not of ours
        assert 0 < Quantity.parse(found["usage"]["cpu"]).nano < 10**9
    answers = {path: api.ask("GET", f"{NODES}/node-1/proxy{path}") for path in ("/pods", "/metrics/resource")}
    assert len(json.loads(answers["/pods"].body)["items"]) == 3
    assert answers["/metrics/resource"].status == 404
    own = json.loads(api.ask("GET", f"{NODES}/node-1/proxy/metrics/nodes/node-1/pods").body)["items"]
    assert [pod["metadata"]["name"] for pod in own] == ["pod-of-node-1"]


def test_each_node_has_a_port_of_its_own_from_a_range(api: Api, start: Start) -> None:
    first = free_ports(1)[0]
    fleet = start("--count=3", f"--port-range={first}-{first + 40}")
    nodes = eventually(lambda: ready(api), lambda found: len(found) == 3)
    ports = kubelet_ports(nodes)
    assert len(set(ports.values())) == 3
    assert all(first <= port <= first + 40 for port in ports.values())
    assert not any(METRICS_PATH in node["metadata"]["annotations"] for node in nodes.values())
    for name in ("node-0", "node-2"):
        add_pod(api, f"pod-of-{name}", name)
        pods = answered(api, f"{NODES}/{name}/proxy/pods").json()["items"]
        assert [pod["metadata"]["name"] for pod in pods] == [f"pod-of-{name}"]
        assert json.loads(api.ask("GET", f"{NODES}/{name}/proxy/stats/summary").body)["node"]["nodeName"] == name
        assert b"container c" in answered(api, f"{PODS}/pod-of-{name}/log").body
    assert fleet.command("scale", "node=2").returncode == 0
    assert fleet.command("scale", "node=3").returncode == 0
    eventually(lambda: kubelet_ports(ready(api)) == ports)
    refused = fleet.command("scale", "node=50")
    assert (refused.returncode, len(ready(api))) == (1, 3)
    assert refused.stderr.endswith(" has 41 ports, and the fleet 50 nodes\n")


def test_strangers_are_refused(api: Api, start: Start) -> None:
    (port,) = free_ports(1)
    start("--count=1", f"--port={port}")
    eventually(lambda: ready(api))
    stranger, path = Identity("stranger"), "/metrics/nodes/node-0/metrics/resource"
    assert eventually(lambda: stranger.ask(port, "GET", path)).status == 401


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--port-range=20000",), '--port-range must be FIRST-LAST, such as 20000-20999, not "20000"'),
        (("--port-range=20000-20001", "--port=10250"), "--port and --port-range do not go together"),
        (("--port-range=20000-20001",), "--port-range 20000-20001 has 2 ports, and the fleet 3 nodes"),
        (("--rotate-server-certificates",), "serverTLSBootstrap (--rotate-server-certificates) is for one node"),
        (("--read-only-port=10255",), "readOnlyPort (--read-only-port) is for one node"),
    ],
)
def test_where_a_fleet_cannot_serve_it_ends_before_anything_is_created(
    api: Api, start: Start, flags: tuple[str, ...], message: str
) -> None:
    fleet = start("--count=3", *flags)
    assert fleet.wait(within=120) == 1
    assert f"error: {message}" in fleet.log_text().splitlines()[-1]
    assert api.items(NODES) == []
