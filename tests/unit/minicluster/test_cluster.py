"""The embedded cluster as a whole: its controllers under a clock of ours, its end, its kubeconfig."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.minicluster import MiniCluster
from agent.minicluster.api_resources import LEASES, NAMESPACES
from agent.minicluster.controller_manager import CidrAllocator, NodeMonitor, NodeMonitorOptions, NodeReconciler
from agent.minicluster.node_strategy import NODES
from agent.minicluster.object_store import HistoryExpiredError, ObjectStore, StoreClosedError
from agent.minicluster.registry import GenericRegistry
from agent.minicluster.strategy import human_duration
from tests.fakes import until

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class World:
    """A registry, its controllers and a clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.store = ObjectStore()
        self.registry = GenericRegistry(self.store, now=self.now)
        self.reconciler = NodeReconciler(self.registry, now=self.now)
        options = NodeMonitorOptions(monotonic=lambda: self.seconds)
        self.monitor = NodeMonitor(self.registry, options, now=self.now)
        for name in ("default", "kube-node-lease"):
            self.registry.create(NAMESPACES, "", {"metadata": {"name": name}})
        self._seen = self.store.resource_version

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def pass_time(self, seconds: float, every: Callable[[], None] = lambda: None) -> None:
        """Let time pass in steps of the monitor's period."""
        until = self.seconds + seconds
        while self.seconds < until:
            self.seconds += 5.0
            every()
            self.monitor.sync()
            for change in self.store.changes(NODES.key, self._seen):
                self._seen = change.version
                self.reconciler.sync(change)

    def node(self, name: str) -> Any:
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}]
        return self.registry.create(NODES, "", {"metadata": {"name": name}, "status": {"conditions": conditions}})

    def renew(self, name: str) -> None:
        spec = {"holderIdentity": name, "renewTime": self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        old = self.store.get(LEASES.key, name, "kube-node-lease")
        version = {"resourceVersion": old["metadata"]["resourceVersion"]} if old else {}
        body = {"metadata": {"name": name, **version}, "spec": spec}
        self.registry.replace(LEASES, "kube-node-lease", name, body)

    def ready(self, name: str) -> str:
        found = self.store.get(NODES.key, name)
        assert found is not None
        return str(found["status"]["conditions"][0]["status"])

    def taints(self, name: str) -> list[str]:
        found = self.store.get(NODES.key, name)
        assert found is not None
        return [f"{one['key'].partition('/')[2]}:{one['effect']}" for one in found["spec"].get("taints", [])]


@pytest.fixture
def world() -> World:
    return World()


def test_a_lease_keeps_a_node_ready_for_an_hour(world: World) -> None:
    world.node("n")
    world.pass_time(3600, every=lambda: world.renew("n"))
    assert world.ready("n") == "True"
    assert world.taints("n") == []


def test_without_signs_of_life_a_node_is_unknown_after_the_grace_period(world: World) -> None:
    world.node("n")
    world.pass_time(55)
    assert world.ready("n") == "True"
    world.pass_time(5)
    assert world.ready("n") == "Unknown"


def test_the_only_node_of_a_cluster_is_not_told_to_evict(world: World) -> None:
    world.node("n")
    world.pass_time(70)
    assert world.taints("n") == ["unreachable:NoSchedule"]


def test_a_lost_node_among_healthy_ones_is_told_to_evict(world: World) -> None:
    world.node("lost")
    world.node("healthy")
    world.pass_time(70, every=lambda: world.renew("healthy"))
    assert world.taints("lost") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
    assert world.taints("healthy") == []


def test_evictions_are_taken_back_when_the_last_node_is_lost(world: World) -> None:
    world.node("lost")
    world.node("next")
    world.pass_time(70, every=lambda: world.renew("next"))
    world.pass_time(70)
    assert world.taints("lost") == ["unreachable:NoSchedule"]


def test_losing_a_node_is_told_once(world: World) -> None:
    world.node("n")
    world.pass_time(200)
    told = [one["reason"] for one in world.store.list("events")]
    assert told.count("NodeNotReady") == 1


def test_cidrs_are_given_once_and_given_back() -> None:
    cidrs = CidrAllocator("10.0.0.0/23")
    nodes = [{"metadata": {"uid": str(number)}, "spec": {}} for number in range(3)]
    assert [cidrs.allocate(node) for node in nodes] == ["10.0.0.0/24", "10.0.1.0/24", ""]
    cidrs.release(nodes[0])
    assert cidrs.allocate(nodes[2]) == "10.0.0.0/24"


def test_old_history_is_forgotten() -> None:
    store = ObjectStore(history_length=10)
    first = store.put("things", {"metadata": {"name": "a"}})
    for _ in range(30):
        store.put("things", {"metadata": {"name": "a"}})
    with pytest.raises(HistoryExpiredError):
        store.changes("things", int(first["metadata"]["resourceVersion"]))
    assert len(store.changes("things", store.resource_version - 10)) == 10


@pytest.mark.anyio
async def test_a_closed_store_keeps_no_one_waiting() -> None:
    store = ObjectStore()
    waiting = asyncio.create_task(store.changed("things", store.resource_version))
    await asyncio.sleep(0)
    store.close()
    with pytest.raises(StoreClosedError):
        await waiting


@pytest.mark.anyio
async def test_the_cluster_ends_at_once_in_spite_of_open_watches() -> None:
    cluster = MiniCluster()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {cluster.token}"}) as session:
        async with cluster:
            responses = [await session.get(f"{cluster.url}/api/v1/nodes?watch=true") for _ in range(20)]
            ending_since = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - ending_since < 30.0  # aiohttp would wait for a minute
        assert [await response.read() for response in responses] == [b""] * 20


@pytest.mark.anyio
async def test_an_error_inside_the_block_is_the_error_outside() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with MiniCluster():
            raise LookupError("mine")


@pytest.mark.anyio
async def test_the_kubeconfig_is_private_and_points_here(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)
    async with MiniCluster() as cluster:
        cluster.write_kubeconfig(path)
        config = json.loads(path.read_text())
        assert config["clusters"][0]["cluster"] == {"server": cluster.url}
        assert config["users"][0]["user"] == {"token": cluster.token}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.anyio
async def test_known_tokens_have_a_name() -> None:
    cluster = MiniCluster(tokens={"secret": "alice"})
    async with cluster, aiohttp.ClientSession(headers={"Authorization": f"Bearer {cluster.token}"}) as session:
        url, names = f"{cluster.url}/apis/authentication.k8s.io/v1/tokenreviews", []
        for token in ("secret", cluster.token, "other"):
            async with session.post(url, json={"spec": {"token": token}}) as response:
                names.append((await response.json())["status"]["user"].get("username"))
    assert names == ["alice", "kubernetes-admin", None]


@pytest.mark.anyio
async def test_a_deleted_namespace_takes_its_content_along() -> None:
    async with (
        MiniCluster() as cluster,
        aiohttp.ClientSession(cluster.url, headers={"Authorization": f"Bearer {cluster.token}"}) as session,
    ):
        await session.post("/api/v1/namespaces", json={"metadata": {"name": "short"}})
        leases = "/apis/coordination.k8s.io/v1/namespaces/short/leases"
        await session.post(leases, json={"metadata": {"name": "l"}, "spec": {}})
        async with session.delete("/api/v1/namespaces/short") as response:
            assert (await response.json())["status"]["phase"] == "Terminating"
        await until(lambda: cluster.store.get("namespaces", "short") is None)
        assert cluster.store.list("leases.coordination.k8s.io", "short") == []


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (9 * 86400, "9d"),
        (3 * 365 * 86400, "3y"),
        (20 * 365 * 86400, "20y"),
    ],
)
def test_ages_are_short(seconds: int, shown: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == shown
