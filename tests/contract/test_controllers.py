"""What the control plane does to nodes by itself: taints, labels, addresses, clean-up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from agent.minicluster import MiniCluster
from tests.contract.client import CSINODES, EVENTS, LEASES, NODES, PODS, Api, bearer, condition, eventually

pytestmark = pytest.mark.anyio

PREFIX = "node.kubernetes.io/"


def reader(api: Api, path: str) -> Callable[[], Awaitable[Any]]:
    return lambda: api.read(path)


def taints(node: Any) -> set[tuple[str, str]]:
    return {(one["key"].removeprefix(PREFIX), one["effect"]) for one in node["spec"].get("taints", [])}


async def settles_at(api: Api, name: str, *expected: tuple[str, str]) -> Any:
    """The node, once it carries exactly these taints."""
    return await eventually(reader(api, f"{NODES}/{name}"), lambda node: taints(node) == set(expected))


async def ready(api: Api, name: str, status: str = "True", **others: str) -> None:
    conditions = [condition("Ready", status), *(condition(kind, value) for kind, value in others.items())]
    await api.create(NODES, {"metadata": {"name": name}, "status": {"conditions": conditions}})


async def test_a_ready_node_loses_its_taint(api: Api, name: str) -> None:
    await ready(api, name)
    await settles_at(api, name)


async def neighbour(api: Api, name: str) -> None:
    """A healthy node in the test's zone: without one, the control plane takes back the taints that evict pods."""
    await zoned(api, name, f"{name}-neighbour", [condition("Ready", "True")])


async def zoned(api: Api, zone: str, name: str, conditions: list[dict[str, str]]) -> Any:
    labels = {"topology.kubernetes.io/region": "contract", "topology.kubernetes.io/zone": zone[:63].strip("-")}
    return await api.create(NODES, {"metadata": {"name": name, "labels": labels}, "status": {"conditions": conditions}})


async def test_a_node_that_is_not_ready_is_tainted_twice(api: Api, name: str) -> None:
    await neighbour(api, name)
    await zoned(api, name, name, [condition("Ready", "False")])
    node = await settles_at(api, name, ("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
    (evicting,) = [one for one in node["spec"]["taints"] if one["effect"] == "NoExecute"]
    assert evicting["timeAdded"]


async def test_taints_go_when_the_node_recovers(api: Api, name: str) -> None:
    await neighbour(api, name)
    await zoned(api, name, name, [condition("Ready", "False")])
    await settles_at(api, name, ("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
    await api.patch(f"{NODES}/{name}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    await settles_at(api, name)


@pytest.mark.parametrize(
    ("kind", "taint"),
    [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ],
)
async def test_a_node_under_pressure_is_tainted(api: Api, name: str, kind: str, taint: str) -> None:
    await ready(api, name, **{kind: "True"})
    await settles_at(api, name, (taint, "NoSchedule"))
    await api.patch(f"{NODES}/{name}/status", {"status": {"conditions": [{"type": kind, "status": "False"}]}})
    await settles_at(api, name)


async def test_a_cordoned_node_is_tainted(api: Api, name: str) -> None:
    await ready(api, name)
    await settles_at(api, name)
    await api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
    await settles_at(api, name, ("unschedulable", "NoSchedule"))
    await api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": None}})
    await settles_at(api, name)


async def test_taints_of_others_stay(api: Api, name: str) -> None:
    own = {"key": "example.com/own", "value": "v", "effect": "NoSchedule"}
    status = {"conditions": [condition("Ready", "True")]}
    await api.create(NODES, {"metadata": {"name": name}, "spec": {"taints": [own]}, "status": status})
    node = await settles_at(api, name, ("example.com/own", "NoSchedule"))
    assert node["spec"]["taints"] == [own]


async def test_a_node_gets_a_range_of_pod_addresses(api: Api, name: str) -> None:
    await api.create(NODES, {"metadata": {"name": name}})
    node = await eventually(reader(api, f"{NODES}/{name}"), lambda node: "podCIDR" in node["spec"])
    assert node["spec"]["podCIDR"].startswith("10.244.")
    assert node["spec"]["podCIDR"].endswith(".0/24")
    assert node["spec"]["podCIDRs"] == [node["spec"]["podCIDR"]]


async def test_nodes_do_not_share_pod_addresses(api: Api, name: str) -> None:
    found = []
    for suffix in ("a", "b"):
        await api.create(NODES, {"metadata": {"name": f"{name}-{suffix}"}})
        path = f"{NODES}/{name}-{suffix}"
        found.append(await eventually(reader(api, path), lambda node: "podCIDR" in node["spec"]))
    assert found[0]["spec"]["podCIDR"] != found[1]["spec"]["podCIDR"]


async def test_the_old_names_of_labels_are_filled_in(api: Api, name: str) -> None:
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
    await api.create(NODES, {"metadata": {"name": name, "labels": labels}})
    old = {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "arm64"}
    await eventually(reader(api, f"{NODES}/{name}"), lambda node: node["metadata"]["labels"] == labels | old)


async def test_a_node_gets_its_ttl(api: Api, name: str) -> None:
    await api.create(NODES, {"metadata": {"name": name}})
    ttl = {"node.alpha.kubernetes.io/ttl": "0"}
    await eventually(reader(api, f"{NODES}/{name}"), lambda node: node["metadata"].get("annotations") == ttl)


async def test_a_registration_is_told(api: Api, name: str) -> None:
    node = await api.create(NODES, {"metadata": {"name": name}})
    selector = f"involvedObject.uid={node['metadata']['uid']},reason=RegisteredNode"
    listed = await eventually(
        lambda: api.get(EVENTS, fieldSelector=selector), lambda answer: bool(answer.body["items"])
    )
    (event,) = listed.body["items"]
    assert event["message"] == f"Node {name} event: Registered Node {name} in Controller"
    assert event["source"] == {"component": "node-controller"}
    about = {"kind": "Node", "name": name, "uid": node["metadata"]["uid"], "apiVersion": "v1"}
    assert event["involvedObject"] == about
    assert (event["type"], event["count"], event["reportingComponent"]) == ("Normal", 1, "node-controller")


async def test_a_deleted_node_takes_its_lease_and_csinode_along(api: Api, name: str) -> None:
    node = await api.create(NODES, {"metadata": {"name": name}})
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    metadata = {"name": name, "ownerReferences": [owner]}
    await api.create(LEASES, {"metadata": metadata, "spec": {"holderIdentity": name}})
    await api.create(CSINODES, {"metadata": metadata, "spec": {"drivers": None}})
    await api.create(LEASES, {"metadata": {"name": f"{name}-free"}, "spec": {}})
    await api.delete(f"{NODES}/{name}")
    for path in (LEASES, CSINODES):
        await eventually(lambda path=path: api.get(f"{path}/{name}"), lambda answer: answer.status == 404, within=60)
    assert (await api.get(f"{LEASES}/{name}-free")).status == 200


@dataclass
class Patience:
    """A server that waits for silent nodes; time passes at the embedded one only when we say so."""

    api: Api
    seconds: float = 0.0


@pytest.fixture
async def patience(server: str, api: Api) -> AsyncIterator[Patience]:
    """The server under test."""
    found = Patience(api)
    if server == "real":
        yield found
        return
    clock = {"node_monitor_period_seconds": 0.02, "monotonic": lambda: found.seconds}
    async with MiniCluster(**clock) as cluster, aiohttp.ClientSession(headers=bearer(cluster)) as session:
        found.api = Api(session, cluster.url)
        yield found


async def test_a_silent_node_becomes_unknown_and_comes_back(patience: Patience, name: str) -> None:
    kinds, api = ("Ready", "MemoryPressure", "NetworkUnavailable"), patience.api
    given = [condition(kind, str(kind == "Ready")) for kind in kinds]
    await neighbour(api, name)
    made = await zoned(api, name, name, given)
    twice = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}

    async def look() -> Any:
        """Read the node while its neighbour stays alive: it shows another heartbeat each time."""
        patience.seconds += 15
        heartbeat = datetime(2026, 1, 2, 4, tzinfo=UTC) + timedelta(seconds=patience.seconds)
        alive = {"type": "Ready", "lastHeartbeatTime": heartbeat.strftime("%Y-%m-%dT%H:%M:%SZ")}
        await api.patch(f"{NODES}/{name}-neighbour/status", {"status": {"conditions": [alive]}})
        return await api.read(f"{NODES}/{name}")

    node = await eventually(look, lambda node: taints(node) == twice, within=120, every=0.1)
    assert [told(one) for one in node["status"]["conditions"]] == [
        ("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
        ("MemoryPressure", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
        ("NetworkUnavailable", "False", "Because", "told"),
        ("DiskPressure", "Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status."),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status."),
    ]
    heartbeats = [one["lastHeartbeatTime"] for one in node["status"]["conditions"]]
    born = made["metadata"]["creationTimestamp"]
    assert heartbeats == ["2026-01-02T03:04:05Z"] * 3 + [born] * 2
    alive = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:14:05Z"}
    await api.patch(f"{NODES}/{name}/status", {"status": {"conditions": [alive]}})
    await settles_at(api, name)


def told(one: dict[str, str]) -> tuple[str, str, str, str]:
    return one["type"], one["status"], one["reason"], one["message"]


async def test_a_pod_of_a_node_waits_for_the_node_to_let_it_go(api: Api, name: str) -> None:
    await ready(api, name)
    spec = {"nodeName": name, "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    await api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    deleted = (await api.delete(f"{PODS}/{name}")).body
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30
    assert deleted["metadata"]["deletionTimestamp"]
    assert (await api.get(f"{PODS}/{name}")).status == 200
    last_word = {"gracePeriodSeconds": 0, "preconditions": {"uid": deleted["metadata"]["uid"]}}
    assert (await api.delete(f"{PODS}/{name}", last_word)).status == 200
    assert (await api.get(f"{PODS}/{name}")).status == 404
