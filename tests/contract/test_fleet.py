"""`fake-kubelet fleet` as users run it, on an embedded cluster over loopback."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.core.nodestatus import is_ready
from tests.cluster.api import NODES, Api
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.slow

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSINODES = "/apis/storage.k8s.io/v1/csinodes"
Fleet = Callable[..., Process]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as embedded:
        embedded.write_kubeconfig(tmp_path / "kubeconfig")
        yield embedded


@pytest.fixture
def api(cluster: EmbeddedCluster) -> Api:
    return cluster.api


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.fixture
def start_fleet(cluster: EmbeddedCluster, tmp_path: Path, env: dict[str, str]) -> Iterator[Fleet]:
    """Starts `fleet` with the given flags."""
    started: list[Process] = []

    def start(*flags: str, healthz_port: int = 0) -> Process:
        kubeconfig = f"--kubeconfig={tmp_path / 'kubeconfig'}"
        argv = [sys.executable, "-m", "agent", "fleet", *flags, kubeconfig, f"--healthz-port={healthz_port}"]
        process = Process("fleet", argv, log=tmp_path / "fleet.log", env=env)
        started.append(process)
        process.start()
        return process

    yield start
    for process in started:
        process.stop()


@pytest.fixture
def command(tmp_path: Path, env: dict[str, str]) -> Command:
    """Runs a command of `fleet` to its end."""

    def run(*words: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "agent", "fleet", *words, *flags]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, env=env)

    return run


def names(api: Api, path: str) -> set[str]:
    return {obj["metadata"]["name"] for obj in api.items(path)}


def ready(api: Api) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in api.items(NODES) if is_ready(node.get("status", {}))}


def test_a_hundred_nodes_live_return_and_are_scaled_and_deleted_and_no_other_node_is(
    api: Api, start_fleet: Fleet, command: Command, tmp_path: Path
) -> None:
    api.create(NODES, {"metadata": {"name": "foreign"}})
    fleet = start_fleet("--count=100", "--name-template=hollow-{index:05}", "--capacity=cpu=32,memory=256Gi")
    hundred = {f"hollow-{index:05}" for index in range(100)}
    nodes = eventually(lambda: ready(api), lambda found: found.keys() == hundred)
    assert {node["status"]["capacity"]["cpu"] for node in nodes.values()} == {"32"}
    eventually(lambda: names(api, LEASES) == names(api, CSINODES) == hundred)
    uid = nodes["hollow-00042"]["metadata"]["uid"]
    api.delete(f"{NODES}/hollow-00042")
    eventually(lambda: ready(api)["hollow-00042"], lambda node: node["metadata"]["uid"] != uid)

    kubeconfig = f"--kubeconfig={tmp_path / 'kubeconfig'}"
    assert command("scale", "node=101").stdout == "1 nodes added, 0 changed, 0 removed\n"
    eventually(lambda: ready(api), lambda found: len(found) == 101)
    assert command("scale", "node=90").stdout == "0 nodes added, 0 changed, 11 removed\n"
    assert len(names(api, NODES)) == 91
    assert command("scale", "gpu=1").stderr == 'error: fleet fleet has no group "gpu"; its groups are node\n'
    status = command("status", flags=(kubeconfig,))
    assert status.stdout.startswith("fleet fleet: 90 nodes: 90 Ready; lease age: p50 ")
    refused = command("delete", flags=(kubeconfig,))
    assert (refused.returncode, len(names(api, NODES))) == (1, 91)
    assert refused.stderr.startswith("error: fleet fleet still runs")

    assert fleet.stop() == 0
    assert len(ready(api)) == 90
    assert command("delete", flags=(kubeconfig,)).stdout == "Deleted 90 nodes of fleet fleet.\n"
    assert names(api, NODES) == {"foreign"}
    assert names(api, LEASES) == names(api, CSINODES) == set()


def test_the_metrics_of_a_fleet_have_as_many_series_for_ten_nodes_as_for_two(api: Api, start_fleet: Fleet) -> None:
    series = []
    for count in (2, 10):
        port = free_ports(1)[0]
        fleet = start_fleet(f"--count={count}", healthz_port=port)
        eventually(lambda: len(ready(api)), lambda found, count=count: found == count)
        text = eventually(lambda port=port: httpx.get(f"http://127.0.0.1:{port}/metrics").text)
        assert f'fake_kubelet_fleet_nodes{{fleet="fleet",state="Ready"}} {count}.0' in text
        assert 'node="' not in text
        series.append(sum(line.startswith("fake_kubelet_fleet_") for line in text.splitlines()))
        fleet.stop()
    assert series[0] == series[1] > 10


def test_a_restart_takes_up_the_same_nodes_without_one_being_not_ready(api: Api, start_fleet: Fleet) -> None:
    fleet = start_fleet("--count=20")
    before = eventually(lambda: ready(api), lambda found: len(found) == 20)
    fleet.kill()
    renewed = {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in api.items(LEASES)}
    start_fleet("--count=20")
    eventually(
        lambda: all(lease["spec"]["renewTime"] > renewed[lease["metadata"]["name"]] for lease in api.items(LEASES))
    )
    after = ready(api)
    transitions = [
        {name: node["status"]["conditions"][-1]["lastTransitionTime"] for name, node in nodes.items()}
        for nodes in (before, after)
    ]
    assert transitions[0] == transitions[1]
    assert {node["metadata"]["uid"] for node in before.values()} == {node["metadata"]["uid"] for node in after.values()}


def test_a_name_of_a_node_that_is_not_ours_is_refused_before_anything_is_created(api: Api, start_fleet: Fleet) -> None:
    api.create(NODES, {"metadata": {"name": "node-7"}})
    fleet = start_fleet("--count=10")
    assert fleet.wait(within=120) == 1
    assert fleet.log_text() == (
        "error: Node node-7 exists and is not of fleet fleet; choose other names with --name-template, or delete it\n"
    )
    assert names(api, NODES) == {"node-7"}
    assert names(api, LEASES) == set()


def test_a_file_that_changed_is_applied_after_sighup(api: Api, start_fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    text = "apiVersion: fake-kubelet.dev/v1alpha1\nkind: Fleet\ngroups:\n- {name: a, count: 3}\n"
    file.write_text(text)
    fleet = start_fleet("-f", str(file))
    eventually(lambda: ready(api).keys() == {"a-0", "a-1", "a-2"})
    file.write_text(text.replace("count: 3", "count: 1") + "- {name: b, count: 2}\n")
    os.kill(fleet.pid, signal.SIGHUP)
    eventually(lambda: ready(api).keys() == names(api, NODES) == {"a-0", "b-0", "b-1"})
    file.write_text(text + "nonsense: 1\n")
    os.kill(fleet.pid, signal.SIGHUP)
    eventually(lambda: "Unable to change the fleet" in fleet.log_text())
    assert ready(api).keys() == {"a-0", "b-0", "b-1"}
