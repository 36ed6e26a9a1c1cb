"""metrics.k8s.io of the embedded cluster; the real one is metrics-server's, which tests/server/test_top.py looks at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.core.quantity import Quantity
from tests.cluster.api import NODES, TABLE, Api
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.metrics_server import check_node_metrics
from tests.cluster.stub_kubelet import StubKubelet

API = "/apis/metrics.k8s.io/v1beta1"
CONTAINER = 'container="main",namespace="default",pod="web"'
EXPOSITION = """resource_scrape_error 0
node_memory_working_set_bytes 3.145728e+06 {millis}
node_cpu_usage_seconds_total {cpu} {millis}
container_cpu_usage_seconds_total{{{labels}}} 5 {millis}
container_memory_working_set_bytes{{{labels}}} 2048 {millis}
"""


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """An embedded cluster with two nodes: one whose kubelet has figures, and one that does not answer."""
    with StubKubelet() as kubelet, EmbeddedCluster() as cluster:
        kubelet.sequences["/metrics/resource"] = (
            EXPOSITION.format(cpu=10 + 2 * look, millis=1000 + 1000 * look, labels=CONTAINER) for look in range(1000)
        )
        cluster.api.create(NODES, kubelet.node("alive") | {"metadata": {"name": "alive", "labels": {"a": "b"}}})
        dead = kubelet.node("dead")
        dead["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] = 1
        cluster.api.create(NODES, dead)
        yield cluster.api


def test_it_is_discovered(api: Api) -> None:
    assert "metrics.k8s.io" in [group["name"] for group in api.get("/apis")["groups"]]
    found = {entry["name"]: (entry["kind"], entry["namespaced"], entry["verbs"]) for entry in api.get(API)["resources"]}
    assert found == {"nodes": ("NodeMetrics", False, ["get", "list"]), "pods": ("PodMetrics", True, ["get", "list"])}


def test_a_node_has_metrics(api: Api) -> None:
    found = api.get(f"{API}/nodes/alive")
    check_node_metrics(found)
    assert Quantity.parse(found["usage"]["cpu"]).millis == 2000
    assert Quantity.parse(found["usage"]["memory"]).value == 3 * 2**20
    assert found["metadata"]["labels"] == {"a": "b"}


def test_nodes_that_do_not_answer_are_left_out(api: Api) -> None:
    found = api.get(f"{API}/nodes")
    assert (found["kind"], found["apiVersion"]) == ("NodeMetricsList", "metrics.k8s.io/v1beta1")
    assert [node["metadata"]["name"] for node in found["items"]] == ["alive"]
    message = 'nodes.metrics.k8s.io "dead" not found'
    assert api.ask("GET", f"{API}/nodes/dead").refusal == (404, "NotFound", message)


def test_labels_select_nodes(api: Api) -> None:
    assert api.ask("GET", f"{API}/nodes", labelSelector="a=c").json()["items"] == []
    assert len(api.ask("GET", f"{API}/nodes", labelSelector="a=b").json()["items"]) == 1


def test_a_pod_has_the_metrics_of_its_containers(api: Api) -> None:
    found = api.get(f"{API}/namespaces/default/pods/web")
    assert (found["kind"], found["metadata"]["namespace"]) == ("PodMetrics", "default")
    assert found["containers"] == [{"name": "main", "usage": {"cpu": "0", "memory": "2Ki"}}]
    assert api.get(f"{API}/namespaces/other/pods")["items"] == []
    assert len(api.get(f"{API}/pods")["items"]) == 1


def test_it_can_be_printed_as_a_table(api: Api) -> None:
    table = api.ask("GET", f"{API}/nodes", accept=TABLE).json()
    assert (table["kind"], [row["cells"][0] for row in table["rows"]]) == ("Table", ["alive"])


def test_nobody_can_write_it(api: Api) -> None:
    assert api.ask("DELETE", f"{API}/nodes/alive").status == 405
