"""What /metrics tells, and that docs/metrics.md tells the same."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.adapters.api_connection import RequestMetrics
from agent.adapters.host.deadline_reader import SensorMetrics
from agent.adapters.metrics.kubelet_metrics import KubeletMetrics
from agent.controllers.certificates import CertificateMetrics
from agent.core.fleet_view import FleetView
from agent.core.metrics import Registry
from agent.core.pods.info import PodCounts, pod_info
from agent.fleet.metrics import fleet_families
from agent.process import Process
from tests.fakes import START, FakeClock, FakeHost, FakeNodes, fake_clients, running
from tests.settings import Config, NodeConfig

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[4]


def read(page):
    return {family.name: family for family in text_string_to_metric_families(page.decode())}


def own(*measured, counts=None):
    metrics, counts = Registry(), counts or PodCounts()
    for one in measured:
        metrics.collect(one.families)
    return KubeletMetrics(Config(), metrics=metrics, pods=lambda: counts, feature_gates={"AllAlpha": True})


async def test_a_node_tells_what_it_is():
    told = read(await own().metrics())
    assert told["kubelet_node_name"].samples[0].labels == {"node": "n1"}
    assert told["kubernetes_build_info"].samples[0].labels["git_version"] == "v1.36.3"
    assert told["kubelet_cgroup_version"].samples[0].value in {1, 2}
    assert told["process_resident_memory_bytes"].samples[0].value > 2**20
    features = {sample.labels["name"]: sample.value for sample in told["kubernetes_feature_enabled"].samples}
    assert (features["EventedPLEG"], features["GracefulNodeShutdown"]) == (1, 1)


async def test_pods_are_counted_as_a_kubelet_counts_them():
    pods = [
        {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]},
        {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {}}}]},
        {},
    ]
    metadata = {"namespace": "ns", "name": "p", "uid": "u"}
    counts = PodCounts()
    for status in pods:
        counts.add(pod_info({"metadata": metadata, "spec": {"containers": []}, "status": status}))
    told = read(await own(counts=counts).metrics())
    assert told["kubelet_running_pods"].samples[0].value == 1
    states = {sample.labels["container_state"]: sample.value for sample in told["kubelet_running_containers"].samples}
    assert states == {"running": 1, "exited": 1}
    assert "kubelet_running_containers" not in read(await own().metrics())


async def test_the_page_of_probes_is_as_empty_as_a_kubelets():
    assert list(read(await own().probes())) == ["process_start_time_seconds"]


async def test_requests_are_counted_as_client_go_counts_them():
    metrics = RequestMetrics()
    metrics.answered("GET", "h:6443", 200, 0.02)
    metrics.answered("PUT", "h:6443", None, 3.0)
    told = read(await own(metrics).metrics())
    assert [sample.labels for sample in told["rest_client_requests"].samples] == [
        {"code": "200", "host": "h:6443", "method": "GET"},
        {"code": "<error>", "host": "h:6443", "method": "PUT"},
    ]
    buckets = {
        (sample.labels.get("verb"), sample.labels.get("le")): sample.value
        for sample in told["rest_client_request_duration_seconds"].samples
    }
    assert (buckets["GET", "0.025"], buckets["PUT", "2"], buckets["PUT", "4"]) == (1, 0, 1)


async def test_docs_tell_every_metric_of_ours_and_no_other():
    documented = dict(_rows((ROOT / "docs/metrics.md").read_text()))
    assert {name: row for name, row in await _exercised() if name.startswith("fake_kubelet_")} == documented
    source = "".join(path.read_text() for path in sorted((ROOT / "agent").rglob("*.py")))
    assert set(re.findall(r'"(fake_kubelet_[a-z_]+)"', source)) == set(documented)


def _rows(text):
    for line in text.splitlines():
        if found := re.fullmatch(r"\| `(fake_kubelet_\w+)` \| (\w+) \| (.*?) ?\| (.+) \|", line):
            yield found[1], (found[2], tuple(re.findall(r"`(\w+)`", found[3])), found[4])


async def _exercised():
    """Every family, with samples that show its labels."""
    clock, sensors, certificates = FakeClock(), SensorMetrics(), CertificateMetrics("client")
    nodes, process = FakeNodes(clock), Process(FakeHost(clock), clock, sensor_seconds=1.0, rand=lambda: 0.0)
    process.add(NodeConfig(node_name="n1"), fake_clients(clock, nodes))
    process.reflect(nodes)
    process.start()
    async with running(*process.tasks, *process.lasting_tasks):
        await clock.advance(12)
        nodes.cut()
        await clock.advance(1)
    sensors.read("nodefs", 0.1, failed=True)
    certificates.renewed(None, START)
    fleet = fleet_families(lambda: FleetView(name="test", seconds=0.0, states={}))
    families = [*process.metrics.families(), *sensors.families(), *certificates.families(None, START), *fleet]
    return [(family.name, (family.kind, _labels(family), family.help)) for family in families]


def _labels(family):
    return tuple(sorted({label for sample in family.samples for label in sample.labels} - {"le"}))
