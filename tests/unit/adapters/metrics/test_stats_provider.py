from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.adapters.metrics.cadvisor_metrics import cadvisor_metrics
from agent.adapters.metrics.stats_provider import StatsProvider, resource_metrics
from agent.core.model import HostSnapshot
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
