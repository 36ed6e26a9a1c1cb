"""`fake-kubelet fleet --adopt`: Nodes of autoscalers' shapes on an embedded cluster, as they create and delete them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.nodestatus import is_ready
from agent.core.quantity import Quantity
from tests.cluster.api import CSINODES, LEASES, NODES, PODS, Api
from tests.cluster.autoscaled import METRICS_PATH, cluster_autoscaler_node, karpenter_node
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.fleet_process import FleetProcess
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.slow

NODE_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
KARPENTER, AUTOSCALER = "happy-otter-42", "pool-abcde"
Start = Callable[..., FleetProcess]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with EmbeddedCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        yield cluster.api


@pytest.fixture
def adopt(tmp_path: Path) -> Iterator[Start]:
    """Starts a fleet that adopts KWOK's Nodes."""
    started: list[FleetProcess] = []

    def start_one(*flags: str) -> FleetProcess:
        own = ("--adopt=kwok.x-k8s.io/node=fake", f"--port={free_ports(1)[0]}")
        fleet = FleetProcess(*own, *flags, f"--kubeconfig={tmp_path / 'kubeconfig'}", log=tmp_path / "fleet.log")
        started.append(fleet)
        fleet.start()
        return fleet

    yield start_one
    for fleet in started:
        fleet.stop()


def names(api: Api, path: str) -> set[str]:
    return {obj["metadata"]["name"] for obj in api.items(path)}


def ready_node(api: Api, name: str) -> dict[str, Any]:
    return eventually(lambda: api.get(f"{NODES}/{name}"), lambda node: is_ready(node.get("status", {})))


def without_controllers_labels(labels: dict[str, str]) -> dict[str, str]:
    """Without those that the node lifecycle controller copies."""
    return {key: value for key, value in labels.items() if not key.startswith("beta.kubernetes.io/")}


def without_controllers(taints: list[dict[str, str]]) -> list[dict[str, str]]:
    return [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]


@pytest.mark.parametrize("shape", [karpenter_node, cluster_autoscaler_node])
def test_what_the_creator_wrote_stays_and_the_rest_is_ours(
    api: Api, adopt: Start, shape: Callable[[str], dict[str, Any]]
) -> None:
    created = shape(KARPENTER)
    adopt()
    api.create(NODES, created)
    node = ready_node(api, KARPENTER)
    assert without_controllers_labels(node["metadata"]["labels"]) == created["metadata"]["labels"]
    assert node["metadata"]["annotations"].items() >= created["metadata"]["annotations"].items()
    assert node["spec"]["providerID"] == created["spec"]["providerID"]
    assert without_controllers(node["spec"].get("taints", [])) == created["spec"].get("taints", [])
    for kind in ("capacity", "allocatable"):
        assert node["status"][kind].items() >= created["status"][kind].items()
    assert {entry["type"] for entry in node["status"]["conditions"]} >= {"Ready", "MemoryPressure", "DiskPressure"}
    info = node["status"]["nodeInfo"]
    assert info["architecture"] == created["metadata"]["labels"]["kubernetes.io/arch"]
    assert info["containerRuntimeVersion"].startswith("fake://")
    assert node["status"]["addresses"][-1] == {"type": "Hostname", "address": KARPENTER}
    assert eventually(lambda: api.get(f"{LEASES}/{KARPENTER}"))["spec"]["holderIdentity"] == KARPENTER


def test_a_deleted_node_ends_with_its_pods_and_its_lease_and_does_not_return(api: Api, adopt: Start) -> None:
    adopt()
    for node in (karpenter_node(KARPENTER), cluster_autoscaler_node(AUTOSCALER)):
        api.create(NODES, node)
    for name in (KARPENTER, AUTOSCALER):
        ready_node(api, name)
        spec = {"nodeName": name, "containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]}
        api.create(PODS, {"metadata": {"name": f"pod-of-{name}"}, "spec": spec})
        eventually(lambda name=name: api.get(f"{PODS}/pod-of-{name}")["status"]["phase"] == "Running")
    api.delete(f"{NODES}/{AUTOSCALER}")
    eventually(lambda: names(api, LEASES) == names(api, CSINODES) == {KARPENTER})
    eventually(lambda: names(api, PODS) == {f"pod-of-{KARPENTER}"})
    renewed = api.get(f"{LEASES}/{KARPENTER}")["spec"]["renewTime"]
    eventually(lambda: api.get(f"{LEASES}/{KARPENTER}")["spec"]["renewTime"] > renewed)
    assert names(api, NODES) == {KARPENTER}
    api.create(NODES, cluster_autoscaler_node(AUTOSCALER))  # by its creator, that is
    ready_node(api, AUTOSCALER)


def test_nodes_and_pods_that_are_there_already_are_taken_up_and_other_nodes_are_not(api: Api, adopt: Start) -> None:
    api.create(NODES, {"metadata": {"name": "foreign", "labels": {"kwok.x-k8s.io/node": "real"}}})
    api.create(NODES, karpenter_node(KARPENTER))
    spec = {"nodeName": KARPENTER, "containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]}
    api.create(PODS, {"metadata": {"name": "early"}, "spec": spec})
    adopt("--count=2")
    eventually(lambda: api.get(f"{PODS}/early")["status"]["phase"] == "Running")
    for name in (KARPENTER, "node-0", "node-1"):
        ready_node(api, name)
    assert names(api, LEASES) == {KARPENTER, "node-0", "node-1"}
    assert "conditions" not in api.get(f"{NODES}/foreign")["status"]


def test_adopted_nodes_outlive_a_change_of_the_fleets_own(api: Api, adopt: Start) -> None:
    api.create(NODES, karpenter_node(KARPENTER))
    fleet = adopt("--count=2")
    for name in (KARPENTER, "node-0", "node-1"):
        ready_node(api, name)
    assert fleet.command("scale", "node=1").stdout == "0 nodes added, 0 changed, 1 removed\n"
    renewed = api.get(f"{LEASES}/{KARPENTER}")["spec"]["renewTime"]
    eventually(lambda: api.get(f"{LEASES}/{KARPENTER}")["spec"]["renewTime"] > renewed)
    assert names(api, NODES) == {KARPENTER, "node-0"}


def test_the_figures_of_an_adopted_node_are_where_its_annotation_says(api: Api, adopt: Start) -> None:
    adopt()
    api.create(NODES, karpenter_node(KARPENTER))
    api.create(NODES, cluster_autoscaler_node(AUTOSCALER))
    for name in (KARPENTER, AUTOSCALER):
        annotations = ready_node(api, name)["metadata"]["annotations"]
        assert annotations[METRICS_PATH] == f"/metrics/nodes/{name}/metrics/resource"
    figures = eventually(lambda: api.items(NODE_METRICS), lambda found: len(found) == 2)
    assert {Quantity.parse(found["usage"]["memory"]).value for found in figures} == {256 * 2**20}


@pytest.mark.parametrize("selector", ["kwok.x-k8s.io/node", "=fake", "not a key=fake", ""])
def test_what_is_no_selector_is_refused(api: Api, adopt: Start, selector: str) -> None:
    fleet = adopt(f"--adopt={selector}")
    assert fleet.wait(within=120) == 1
    (line,) = fleet.log_text().splitlines()
    assert line.startswith("error: ")
    assert "--adopt" in line
