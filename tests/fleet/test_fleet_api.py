"""The kubelet's API of a fleet, and adoption, on a real control plane: kubectl and a stock metrics-server ask."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent.core.nodestatus import is_ready
from agent.core.quantity import Quantity
from tests.cluster import build
from tests.cluster.api import LEASES, NODES, PODS
from tests.cluster.autoscaled import METRICS_PATH, cluster_autoscaler_node, karpenter_node
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fleet_process import FleetProcess
from tests.cluster.metrics_server import MetricsServer, check_node_metrics
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.slow

POD_SPEC = {
    "automountServiceAccountToken": False,
    "tolerations": [{"operator": "Exists"}],
    "containers": [{"name": "c", "image": "i"}],
}


@pytest.fixture(scope="module")
def plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that the other tests' nodes do not meet."""
    with ControlPlane(tmp_path_factory.mktemp("fleet-api"), binaries=build.binaries(build=False)) as control_plane:
        eventually(lambda: control_plane.get("serviceaccount", "default", "default"))
        yield control_plane


@pytest.fixture
def start(plane: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., FleetProcess]]:
    """Starts a fleet with these flags."""
    started: list[FleetProcess] = []

    def start_one(*flags: str) -> FleetProcess:
        started.append(FleetProcess(*flags, f"--kubeconfig={plane.admin_kubeconfig}", log=tmp_path / "fleet.log"))
        started[-1].start()
        return started[-1]

    yield start_one
    for fleet in started:
        fleet.stop()
    for node in plane.api.items(NODES):
        plane.api.delete(f"{NODES}/{node['metadata']['name']}")


def ready(plane: ControlPlane) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in plane.api.items(NODES) if is_ready(node.get("status", {}))}


def our_address() -> str:
    found = psutil.net_if_addrs().items()
    return next(a.address for name, all_ in found if name != "lo" for a in all_ if a.family.name == "AF_INET")


def test_kubectl_and_a_stock_metrics_server_find_each_node_of_a_shared_port(
    plane: ControlPlane, start: Callable[..., FleetProcess], metrics_server: Path, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    start("--count=2", f"--port={port}", f"--address={our_address()}", f"--node-ip={our_address()}")
    start("--name=small", "--count=1", "--name-template=small", "--capacity=memory=1Gi", f"--node-ip={our_address()}")
    nodes = eventually(lambda: ready(plane), lambda found: len(found) == 3)
    for name in nodes:
        plane.api.create(PODS, {"metadata": {"name": f"on-{name}"}, "spec": {**POD_SPEC, "nodeName": name}})
    for name in nodes:
        eventually(lambda name=name: plane.get("pod", f"on-{name}", "default")["status"]["phase"] == "Running")
        assert "container c" in eventually(lambda name=name: plane.kubectl("logs", f"on-{name}"))
    with MetricsServer(plane, tmp_path, binary=metrics_server, trusts_anybody=True) as server:
        for name, mebibytes in (("node-0", 256), ("node-1", 256), ("small", 64)):
            found = eventually(lambda name=name: server.node(name), every=0.5)
            check_node_metrics(found)
            assert Quantity.parse(found["usage"]["memory"]).value == mebibytes * 2**20
            assert Quantity.parse(found["usage"]["cpu"]).millis == pytest.approx(10, abs=2)
        assert {line.split()[0] for line in plane.kubectl("top", "node", "--no-headers").splitlines()} == nodes.keys()


def test_nodes_of_autoscalers_are_kept_alive_until_these_delete_them(
    plane: ControlPlane, start: Callable[..., FleetProcess]
) -> None:
    start("--adopt=kwok.x-k8s.io/node=fake", f"--port={free_ports(1)[0]}")
    created = {"happy-otter-42": karpenter_node("happy-otter-42"), "pool-abcde": cluster_autoscaler_node("pool-abcde")}
    for node in created.values():
        plane.api.create(NODES, node)
    nodes = eventually(lambda: ready(plane), lambda found: found.keys() == created.keys())
    for name, node in nodes.items():
        assert node["metadata"]["labels"].items() >= created[name]["metadata"]["labels"].items()
        assert node["metadata"]["annotations"][METRICS_PATH] == f"/metrics/nodes/{name}/metrics/resource"
        assert node["spec"]["providerID"] == created[name]["spec"]["providerID"]
        assert node["status"]["allocatable"].items() >= created[name]["status"]["allocatable"].items()
        plane.api.create(PODS, {"metadata": {"name": f"on-{name}"}, "spec": {**POD_SPEC, "nodeName": name}})
        eventually(lambda name=name: plane.get("pod", f"on-{name}", "default")["status"]["phase"] == "Running")
    taints = {taint["key"] for taint in nodes["happy-otter-42"]["spec"]["taints"]}
    assert "karpenter.sh/unregistered" in taints
    plane.api.delete(f"{NODES}/pool-abcde")
    leases = {"happy-otter-42"}
    eventually(lambda: {lease["metadata"]["name"] for lease in plane.api.items(LEASES)} == leases)
    eventually(lambda: {pod["metadata"]["name"] for pod in plane.api.items(PODS)} == {"on-happy-otter-42"})
    renewed = plane.api.get(f"{LEASES}/happy-otter-42")["spec"]["renewTime"]
    eventually(lambda: plane.api.get(f"{LEASES}/happy-otter-42")["spec"]["renewTime"] > renewed)
    assert ready(plane).keys() == leases
