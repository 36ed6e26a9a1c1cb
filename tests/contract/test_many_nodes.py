"""A process that hosts 1,000 nodes of an embedded cluster, over loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.credentials import load_credentials
from agent.adapters.kube import KubeSelection, PodSelection
from agent.adapters.shapes import NodeShape
from agent.connections import clients_of, open_connections
from agent.core.nodestatus import is_ready
from agent.minicluster import MiniCluster
from agent.node import NodeClients
from agent.process import Process
from tests.fakes import FakeHost, ForgottenEvents, running
from tests.settings import NodeConfig

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NAMES = {f"n{number}" for number in range(999)}
NODES, LEASES = "nodes", "leases.coordination.k8s.io"
MOST_TASKS = 200  # of workers, connections, the cluster and the test, however many nodes there are
PATIENCE_SECONDS = 400.0


class Broken:
    """A client whose every use raises what nobody expects."""

    def __getattr__(self, verb: str) -> Any:
        raise RuntimeError("a bug")


@asynccontextmanager
async def hosted(kubeconfig: Path) -> AsyncIterator[Process]:
    """A process that runs 999 nodes, and another one of which each controller raises in each sync."""
    config = NodeConfig(node_name="broken")
    connections = open_connections(await load_credentials(str(kubeconfig)), config.heartbeat, lambda: None)
    process = Process(FakeHost(), SystemClock(), sensor_seconds=1.0)
    clients = clients_of(connections, config)
    bug: Any = Broken()
    broken = NodeClients(nodes=bug, status_nodes=bug, lease_nodes=bug, leases=bug, csinodes=bug, events=bug)
    process.add(config, broken)
    for name in NAMES:
        process.add(replace(config, node_name=name), replace(clients, events=ForgottenEvents()))
    process.reflect(KubeSelection(connections.watch, "/api/v1/nodes", shape=NodeShape), PodSelection(connections.watch))
    process.start()
    try:
        async with running(*process.tasks, *process.lasting_tasks):
            yield process
    finally:
        for connection in connections:
            await connection.close()


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110  nobody sets an event
            await asyncio.sleep(0.5)


def objects(cluster: MiniCluster, kind: str) -> dict[str, Any]:
    return {obj["metadata"]["name"]: obj for obj in cluster.store.list(kind)}


def ready_nodes(cluster: MiniCluster) -> set[str]:
    return {name for name, node in objects(cluster, NODES).items() if is_ready(node["status"])}


def renewals(cluster: MiniCluster) -> dict[str, str]:
    return {name: lease["spec"]["renewTime"] for name, lease in objects(cluster, LEASES).items()}


def failing_loops(process: Process) -> set[str]:
    (errors,) = (family for family in process.metrics.families() if family.name.endswith("unexpected_errors_total"))
    return {loop for sample in errors.samples if sample.value for loop in sample.labels.values()}


async def test_of_a_thousand_nodes_one_that_raises_in_every_sync_keeps_no_other_from_living(tmp_path: Path) -> None:
    async with MiniCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        async with hosted(tmp_path / "kubeconfig") as process:
            await eventually(lambda: ready_nodes(cluster) == renewals(cluster).keys() == NAMES)
            assert len(asyncio.all_tasks()) < MOST_TASKS
            owners = {name: lease["metadata"]["ownerReferences"] for name, lease in objects(cluster, LEASES).items()}
            uids = {name: node["metadata"]["uid"] for name, node in objects(cluster, NODES).items()}
            assert {name: owner["uid"] for name, (owner,) in owners.items()} == uids
            before = renewals(cluster)
            await eventually(lambda: all(time > before[name] for name, time in renewals(cluster).items()))
            assert failing_loops(process) >= {"lease", "status"}
            assert ready_nodes(cluster) == NAMES
