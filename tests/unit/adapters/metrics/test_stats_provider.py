import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.adapters.metrics.cadvisor_metrics import cadvisor_metrics
from agent.adapters.metrics.stats_provider import StatsProvider, resource_metrics
from agent.core.model import HostSnapshot
from agent.core.pods.info import pod_info
from agent.core.usage import (
    CgroupUsage,
    CpuUsage,
    Detail,
    DiskActivity,
    HostUsage,
    InterfaceUsage,
    MountUsage,
    Pressure,
    Processes,
    Stall,
)
from tests.fakes.host import FILESYSTEM, MEMORY_USAGE

pytestmark = pytest.mark.anyio

CPU = CpuUsage(total_ns=12_345_678_901, user_ns=10**9, system_ns=2 * 10**9, period_us=100000, shares=1024)
MEMORY = replace(MEMORY_USAGE, total_bytes=8000)
USAGE = HostUsage(
    host=HostSnapshot(machine_id="m", system_uuid="s", boot_id="b", online_cpus=frozenset({0, 1}), os_image="X"),
    at=datetime.fromtimestamp(1700000000.123456, UTC),
    booted_at=datetime.fromtimestamp(1600000000, UTC),
    root=CgroupUsage(since=datetime.fromtimestamp(1600000009.9, UTC), cpu=CPU, memory=MEMORY),
    interfaces=(InterfaceUsage("eth0", *range(8)),),
    processes=Processes(processes=3, threads=0, open_files_limit=-1, oom_kills=2),
    mounts=(
        MountUsage(
            "/dev/vda",
            FILESYSTEM,
            DiskActivity(reads=1, read_ms=5),
        ),
    ),
)
NOTHING = HostUsage(host=HostSnapshot(), at=USAGE.at, booted_at=USAGE.at, root=CgroupUsage(since=USAGE.at))
ROOT = 'container="",id="/",image="",name="",namespace="",pod=""'


def test_the_page_of_resources():
    assert resource_metrics(USAGE).decode() == (
        "# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds\n"
        "# TYPE node_cpu_usage_seconds_total counter\n"
        "node_cpu_usage_seconds_total 12.345678901 1700000000123\n"
        "# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes\n"
        "# TYPE node_memory_working_set_bytes gauge\n"
        "node_memory_working_set_bytes 450.0 1700000000123\n"
        "# HELP node_swap_usage_bytes [ALPHA] Current swap usage of the node in bytes. "
        "Reported only on non-windows systems\n"
        "# TYPE node_swap_usage_bytes gauge\n"
        "node_swap_usage_bytes 30.0 1700000000123\n"
        "# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise\n"
        "# TYPE resource_scrape_error gauge\n"
        "resource_scrape_error 0.0\n"
    )


def test_a_page_without_figures_says_so():
    assert [line for line in resource_metrics(NOTHING).decode().splitlines() if line[0] != "#"] == [
        "resource_scrape_error 1.0"
    ]
    assert "container_scrape_error 1.0\n" in cadvisor_metrics(NOTHING).decode()


def pod_infos():
    status = {
        "startTime": "2023-11-14T22:13:10Z",  # ten seconds before the usage
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": "c",
                "image": "nginx:1",
                "restartCount": 0,
                "state": {"running": {"startedAt": "2023-11-14T22:13:15Z"}},
            }
        ],
    }
    annotations = {"fake-kubelet.dev/usage-cpu": "200m", "kwok.x-k8s.io/usage-memory": "64Mi"}
    metadata = {"name": "web", "namespace": "ns", "uid": "u", "annotations": annotations}
    return [
        pod_info({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}, "status": status})
    ]


def test_the_page_of_resources_shows_pods_and_containers_under_a_kubelets_names():
    page = resource_metrics(USAGE, pod_infos()).decode().splitlines()
    samples, names = [line for line in page if line[0] != "#"], [line.split()[2] for line in page if "# TYPE" in line]
    labels, at = 'namespace="ns",pod="web"', "1700000000123"
    assert [line for line in samples if "pod=" in line] == [
        f'container_cpu_usage_seconds_total{{container="c",{labels}}} 1.0246 {at}',
        f'container_memory_working_set_bytes{{container="c",{labels}}} 67108864.0 {at}',
        f'container_start_time_seconds{{container="c",{labels}}} 1699999995.0',
        f'container_swap_usage_bytes{{container="c",{labels}}} 0.0 {at}',
        f"pod_cpu_usage_seconds_total{{{labels}}} 1.0246 {at}",
        f"pod_memory_working_set_bytes{{{labels}}} 67108864.0 {at}",
        f"pod_swap_usage_bytes{{{labels}}} 0.0 {at}",
    ]
    assert names == sorted(names)
    assert "# TYPE container_cpu_usage_seconds_total counter" in page


def test_the_page_of_cadvisor_shows_pods_and_containers_by_their_cgroups():
    page = cadvisor_metrics(USAGE, pod_infos()).decode().splitlines()
    key, group, at = hashlib.sha256(b"u/c/0").hexdigest(), "/kubepods/burstable/podu", "1700000000123"
    container = f'id="{group}/{key}",image="nginx:1",name="{key}",namespace="ns",pod="web"'
    pod = f'id="{group}",image="",name="",namespace="ns",pod="web"'
    assert f'container_cpu_usage_seconds_total{{container="c",cpu="total",{container}}} 1.0246 {at}' in page
    assert f'container_cpu_usage_seconds_total{{container="",cpu="total",{pod}}} 1.0246 {at}' in page
    assert f'container_start_time_seconds{{container="c",{container}}} 1699999995.0' in page
    for kind in ("rss", "usage_bytes", "working_set_bytes"):
        assert f'container_memory_{kind}{{container="c",{container}}} 67108864.0 {at}' in page
        assert f'container_memory_{kind}{{container="",{pod}}} 67108864.0 {at}' in page
    assert len([line for line in page if line == "# TYPE container_cpu_usage_seconds_total counter"]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "# TYPE container_memory_failcnt counter",
        "# TYPE container_fs_inodes_total gauge",
        "# TYPE container_oom_events_total counter",
        f"container_last_seen{{{ROOT}}} 1700000000.0 1700000000123",
        f"container_start_time_seconds{{{ROOT}}} 1600000009.0",
        f"container_memory_working_set_bytes{{{ROOT}}} 450.0 1700000000123",
        f"container_spec_memory_limit_bytes{{{ROOT}}} 8000.0",
        'container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} '
        "12.345678901 1700000000123",
        'container_fs_usage_bytes{container="",device="/dev/vda",id="/",image="",name="",namespace="",pod=""} '
        "55.0 1700000000123",
        'container_fs_read_seconds_total{container="",device="/dev/vda",id="/",image="",name="",namespace="",pod=""} '
        "5e-09 1700000000123",
        'container_network_transmit_packets_dropped_total{container="",id="/",image="",interface="eth0",name="",'
        'namespace="",pod=""} 7.0 1700000000123',
        'container_ulimits_soft{container="",id="/",image="",name="",namespace="",pod="",ulimit="max_open_files"} '
        "-1.0 1700000000123",
        'machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="s"} 2.0',
        'machine_nvm_capacity{boot_id="b",machine_id="m",mode="memory_mode",system_uuid="s"} 0.0',
        'cadvisor_version_info{cadvisorRevision="",cadvisorVersion="",dockerVersion="",kernelVersion="",osVersion="X"} '
        "1.0",
        "machine_scrape_error 0.0",
    ],
)
def test_the_page_of_cadvisor(line):
    assert line in cadvisor_metrics(USAGE).decode().splitlines()


def test_pressure_is_told_where_the_kernel_counts_it():
    assert "container_pressure" not in cadvisor_metrics(USAGE).decode()
    stalled = replace(USAGE.root, io_pressure=Pressure(some=Stall(2_500_000), full=Stall(1)))
    page = cadvisor_metrics(replace(USAGE, root=stalled)).decode()
    assert f"container_pressure_io_waiting_seconds_total{{{ROOT}}} 2.5 1700000000123" in page
    assert f"container_pressure_io_stalled_seconds_total{{{ROOT}}} 1e-06 1700000000123" in page


class Machine:
    """Writes down what it was asked."""

    def __init__(self):
        self.asked = []

    async def usage(self, detail):
        self.asked.append(detail)
        return USAGE


async def test_nobody_asks_for_more_than_he_tells():
    machine = Machine()
    stats = StatsProvider(host=machine, node_name="n1")
    assert machine.asked == []
    await stats.resource()
    await stats.summary(only_cpu_and_memory=True)
    await stats.summary(only_cpu_and_memory=False)
    await stats.cadvisor()
    assert machine.asked == [Detail.COUNTERS, Detail.COUNTERS, Detail.NODE, Detail.MOUNTS]
