"""Made-to-measure nodes, and the limits of a container's own cgroup, seen at a real API server."""

import sys
from pathlib import Path

import pytest

from tests.cluster.agent_process import apart
from tests.cluster.command import run
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

V1 = Path("/sys/fs/cgroup")


@pytest.fixture
def small_cgroup(root, node_name):
    """A v1 memory and cpu cgroup of 512 MiB and one and a half CPUs; the folder of the memory limit."""
    if not (V1 / "memory/memory.limit_in_bytes").exists():
        pytest.skip("needs a cgroup v1 memory controller")
    folders = [V1 / "memory" / node_name, V1 / "cpu" / node_name]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "memory.limit_in_bytes").write_text(str(512 * 2**20))
    (folders[1] / "cpu.cfs_period_us").write_text("100000")
    (folders[1] / "cpu.cfs_quota_us").write_text("150000")
    yield folders
    for folder in folders:
        eventually(lambda folder=folder: not (folder / "cgroup.procs").read_text())
        folder.rmdir()


def inside(folders, *words):
    """A command line that enters cgroups before it becomes the command."""
    enter = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in folders)
    return ["sh", "-c", f'{enter} && exec "$@"', "sh", *words]


def capacity(cluster):
    return cluster.node()["status"]["capacity"]


def test_a_cgroups_limits_are_told_and_followed(cluster, control_plane, small_cgroup, tmp_path):
    kubeconfig = str(control_plane.node_kubeconfig(cluster.name))
    flags = ["--kubeconfig", kubeconfig, "--hostname-override", cluster.name, "--healthz-port", "0", *apart(tmp_path)]
    words = inside(small_cgroup, sys.executable, "-m", "agent", *flags, "--capacity-from", "cgroup")
    agent = Process("fake-kubelet", words, log=tmp_path / "log")
    agent.start()
    try:
        cluster.wait_until_ready()
        assert (capacity(cluster)["cpu"], capacity(cluster)["memory"]) == ("1500m", "512Mi")
        (small_cgroup[0] / "memory.limit_in_bytes").write_text(str(256 * 2**20))
        eventually(lambda: capacity(cluster)["memory"] == "256Mi")  # without a restart
    finally:
        agent.stop()


def test_by_default_the_host_is_told_even_in_a_small_cgroup(cluster, control_plane, small_cgroup, tmp_path):
    kubeconfig = str(control_plane.node_kubeconfig(cluster.name))
    flags = ["--kubeconfig", kubeconfig, "--hostname-override", cluster.name, "--healthz-port", "0", *apart(tmp_path)]
    agent = Process("fake-kubelet", inside(small_cgroup, sys.executable, "-m", "agent", *flags), log=tmp_path / "log")
    agent.start()
    try:
        cluster.wait_until_ready()
        assert capacity(cluster)["cpu"] == run(["nproc", "--all"]).strip()
    finally:
        agent.stop()


def test_the_worked_example_of_the_readme(cluster, start_node):
    start_node(
        *("--capacity", "cpu=16,memory=32Gi,ephemeral-storage=100Gi", "--extended-resources", "nvidia.com/gpu=8"),
        *("--kube-reserved", "cpu=1,memory=2Gi,ephemeral-storage=1Gi"),
        *("--system-reserved", "cpu=500m,memory=1Gi,ephemeral-storage=1Gi"),
        *("--eviction-hard", "memory.available<500Mi,nodefs.available<10%"),
    )
    cluster.wait_until_ready()
    allocatable = cluster.node()["status"]["allocatable"]
    assert (allocatable["cpu"], allocatable["memory"]) == ("14500m", "29196Mi")
    assert (allocatable["ephemeral-storage"], allocatable["nvidia.com/gpu"]) == ("94489280352", "8")


def test_more_reserved_than_there_is_ends_it_with_one_line(start_node):
    agent = start_node("--system-reserved", "memory=1000Ti")
    eventually(lambda: not agent.running)
    assert agent.stop() == 1
    assert "Expected capacity >= reservation" in agent.log_text()
