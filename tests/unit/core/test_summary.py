from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.core.model import HostSnapshot
from agent.core.summary import node_summary
from agent.core.usage import CgroupUsage, CpuUsage, HostUsage, InterfaceUsage, Pressure, Stall
from tests.fakes.host import FILESYSTEM, MEMORY_USAGE

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
CPU = CpuUsage(total_ns=9_000_000_001, user_ns=1, system_ns=2, nanocores=1_500_000_000)
USAGE = HostUsage(
    host=HostSnapshot(pids_max=32768),
    pids_used=345,
    at=NOW,
    booted_at=datetime(2026, 1, 1, tzinfo=UTC),
    root=CgroupUsage(since=datetime(2026, 1, 1, 0, 0, 9, tzinfo=UTC), cpu=CPU, memory=MEMORY_USAGE),
    interfaces=(InterfaceUsage("eth1", *range(8)), InterfaceUsage("eth0", *range(10, 18))),
    nodefs=FILESYSTEM,
)
TIME = "2026-01-02T03:04:05Z"
NO_STALL = {"total": 0, "avg10": 0, "avg60": 0, "avg300": 0}
NO_PRESSURE = {"full": NO_STALL, "some": NO_STALL}


def node(usage=USAGE, **options):
    return node_summary(usage, node_name="n1", **options)["node"]


def changed(**root):
    return replace(USAGE, root=replace(USAGE.root, **root))


def test_the_node_is_told_in_a_kubelets_order():
    keys = ["nodeName", "systemContainers", "startTime", "cpu", "memory", "io", "network", "fs", "runtime", "rlimit"]
    assert list(node()) == [*keys, "swap"]


def test_cpu_and_memory():
    told = node()
    assert told["startTime"] == "2026-01-01T00:00:00Z"
    assert told["cpu"] == {
        "time": TIME,
        "usageNanoCores": 1_500_000_000,
        "usageCoreNanoSeconds": 9_000_000_001,
        "psi": NO_PRESSURE,
    }
    assert told["memory"] == {
        "time": TIME,
        "availableBytes": 550,
        "usageBytes": 600,
        "workingSetBytes": 450,
        "rssBytes": 200,
        "pageFaults": 7,
        "majorPageFaults": 3,
        "psi": NO_PRESSURE,
    }
    assert told["swap"] == {"time": TIME, "swapAvailableBytes": 50, "swapUsageBytes": 30}


def test_storage_has_no_images_and_no_containers():
    told = node()
    filesystem = {"time": TIME, "availableBytes": 40, "capacityBytes": 100, "inodesFree": 15, "inodes": 20}
    assert told["fs"] == filesystem | {"usedBytes": 55, "inodesUsed": 5}
    empty = filesystem | {"usedBytes": 0, "inodesUsed": 0}
    assert told["runtime"] == {"imageFs": empty, "containerFs": empty}


def test_tasks():
    assert node()["rlimit"] == {"time": TIME, "maxpid": 32768, "curproc": 345}


def test_eth0_stands_for_the_node():
    told = node()["network"]
    eth0 = {"name": "eth0", "rxBytes": 10, "rxErrors": 12, "txBytes": 14, "txErrors": 16}
    assert {key: told[key] for key in eth0} == eth0
    assert [interface["name"] for interface in told["interfaces"]] == ["eth1", "eth0"]


def test_without_eth0_the_node_has_interfaces_and_no_sum():
    told = node(replace(USAGE, interfaces=USAGE.interfaces[:1]))["network"]
    assert set(told) == {"time", "name", "interfaces"}
    assert told["name"] == ""


def test_pressure_is_told_in_the_kernels_numbers():
    stalls = Pressure(some=Stall(7, 1.5, 2.0, 0.25), full=Stall(3))
    told = node(changed(cpu=replace(CPU, pressure=stalls), io_pressure=stalls))
    assert told["cpu"]["psi"]["some"] == {"total": 7, "avg10": 1.5, "avg60": 2, "avg300": 0.25}
    assert told["io"]["psi"]["full"] == {"total": 3, "avg10": 0, "avg60": 0, "avg300": 0}


def test_the_cgroup_of_the_pods_is_the_root():
    told = node()
    (pods,) = told["systemContainers"]
    assert pods["name"] == "pods"
    assert pods["startTime"] == "2026-01-01T00:00:09Z"
    assert all(pods[key] == told[key] for key in ("cpu", "memory", "io", "swap"))
    assert set(pods) == {"name", "startTime", "cpu", "memory", "io", "swap"}


def test_the_cgroup_we_run_in_is_the_kubelets():
    since = datetime(2026, 1, 2, tzinfo=UTC)
    unlimited = replace(MEMORY_USAGE, total_bytes=2**64 - 1, swap_total_bytes=2**64 - 1)
    own = CgroupUsage(since=since, cpu=replace(CPU, total_ns=5), memory=unlimited)
    kubelet, pods = node(replace(USAGE, own=own))["systemContainers"]
    assert (kubelet["name"], pods["name"]) == ("kubelet", "pods")
    assert (kubelet["startTime"], kubelet["cpu"]["usageCoreNanoSeconds"]) == ("2026-01-02T00:00:00Z", 5)
    assert "availableBytes" not in kubelet["memory"]
    assert kubelet["swap"] == {"time": TIME, "swapUsageBytes": 30}


def test_only_cpu_and_memory():
    told = node(only_cpu_and_memory=True)
    assert list(told) == ["nodeName", "systemContainers", "startTime", "cpu", "memory", "swap"]
    assert set(told["systemContainers"][0]) == {"name", "startTime", "cpu", "memory", "swap"}
    assert told["startTime"] == "2026-01-01T00:00:09Z"  # as a kubelet: that of the root cgroup


@pytest.mark.parametrize(
    ("usage", "keys"),
    [
        (replace(USAGE, nodefs=None), {"fs", "runtime"}),
        (replace(USAGE, interfaces=()), {"network"}),
        (changed(cpu=None), {"cpu"}),
        (changed(memory=None), {"memory", "swap"}),
    ],
    ids=["a dead disk", "no network", "no CPU time", "no memory"],
)
def test_what_could_not_be_read_costs_itself_and_not_the_answer(usage, keys):
    assert set(node()) - set(node(usage)) == keys


def test_a_rate_that_is_not_known_is_zero_as_in_a_kubelet():
    assert node(changed(cpu=replace(CPU, nanocores=None)))["cpu"]["usageNanoCores"] == 0
