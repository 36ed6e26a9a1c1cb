"""What the control plane does to nodes by itself: taints, labels, addresses, clean-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.minicluster.controller_manager import NodeMonitorOptions
from tests.cluster.api import CSINODES, EVENTS, LEASES, NODES, PODS, Api
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.waiting import eventually
from tests.contract.conditions import condition

PREFIX = "node.kubernetes.io/"


def reader(api: Api, path: str) -> Callable[[], Any]:
    return lambda: api.get(path)


def taints(node: Any) -> set[tuple[str, str]]:
    return {(one["key"].removeprefix(PREFIX), one["effect"]) for one in node["spec"].get("taints", [])}


def settles_at(api: Api, name: str, *expected: tuple[str, str]) -> Any:
    """The node, once it carries exactly these taints."""
    return eventually(reader(api, f"{NODES}/{name}"), lambda node: taints(node) == set(expected))


def ready(api: Api, name: str, status: str = "True", **others: str) -> None:
    conditions = [condition("Ready", status), *(condition(kind, value) for kind, value in others.items())]
    api.create(NODES, {"metadata": {"name": name}, "status": {"conditions": conditions}})


def test_a_ready_node_loses_its_taint(api: Api, name: str) -> None:
    ready(api, name)
    settles_at(api, name)


def neighbour(api: Api, name: str) -> None:
    """A healthy node in the test's zone: without one, the control plane takes back the taints that evict pods."""
    zoned(api, name, f"{name}-neighbour", [condition("Ready", "True")])


def zoned(api: Api, zone: str, name: str, conditions: list[dict[str, str]]) -> Any:
    labels = {"topology.kubernetes.io/region": "contract", "topology.kubernetes.io/zone": zone[:63].strip("-")}
    return api.create(NODES, {"metadata": {"name": name, "labels": labels}, "status": {"conditions": conditions}})


def test_a_node_that_is_not_ready_is_tainted_twice(api: Api, name: str) -> None:
    neighbour(api, name)
    zoned(api, name, name, [condition("Ready", "False")])
    node = settles_at(api, name, ("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
    (evicting,) = [one for one in node["spec"]["taints"] if one["effect"] == "NoExecute"]
    assert evicting["timeAdded"]


def test_taints_go_when_the_node_recovers(api: Api, name: str) -> None:
    neighbour(api, name)
    zoned(api, name, name, [condition("Ready", "False")])
    settles_at(api, name, ("not-ready", "NoSchedule"), ("not-ready", "NoExecute"))
    api.ask("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    settles_at(api, name)


@pytest.mark.parametrize(
    ("kind", "taint"),
    [
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ],
)
def test_a_node_under_pressure_is_tainted(api: Api, name: str, kind: str, taint: str) -> None:
    ready(api, name, **{kind: "True"})
    settles_at(api, name, (taint, "NoSchedule"))
    api.ask("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [{"type": kind, "status": "False"}]}})
    settles_at(api, name)


def test_a_cordoned_node_is_tainted(api: Api, name: str) -> None:
    ready(api, name)
    settles_at(api, name)
    api.ask("PATCH", f"{NODES}/{name}", {"spec": {"unschedulable": True}})
    settles_at(api, name, ("unschedulable", "NoSchedule"))
    api.ask("PATCH", f"{NODES}/{name}", {"spec": {"unschedulable": None}})
    settles_at(api, name)


def test_taints_of_others_stay(api: Api, name: str) -> None:
    own = {"key": "example.com/own", "value": "v", "effect": "NoSchedule"}
    status = {"conditions": [condition("Ready", "True")]}
    api.create(NODES, {"metadata": {"name": name}, "spec": {"taints": [own]}, "status": status})
    node = settles_at(api, name, ("example.com/own", "NoSchedule"))
    assert node["spec"]["taints"] == [own]


def test_a_node_gets_a_range_of_pod_addresses(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    node = eventually(reader(api, f"{NODES}/{name}"), lambda node: "podCIDR" in node["spec"])
    assert node["spec"]["podCIDR"].startswith("10.244.")
    assert node["spec"]["podCIDR"].endswith(".0/24")
    assert node["spec"]["podCIDRs"] == [node["spec"]["podCIDR"]]


def test_nodes_do_not_share_pod_addresses(api: Api, name: str) -> None:
    found = []
    for suffix in ("a", "b"):
        api.create(NODES, {"metadata": {"name": f"{name}-{suffix}"}})
        path = f"{NODES}/{name}-{suffix}"
        found.append(eventually(reader(api, path), lambda node: "podCIDR" in node["spec"]))
    assert found[0]["spec"]["podCIDR"] != found[1]["spec"]["podCIDR"]


def test_the_old_names_of_labels_are_filled_in(api: Api, name: str) -> None:
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"}
    api.create(NODES, {"metadata": {"name": name, "labels": labels}})
    old = {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "arm64"}
    eventually(reader(api, f"{NODES}/{name}"), lambda node: node["metadata"]["labels"] == labels | old)


def test_a_node_gets_its_ttl(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    ttl = {"node.alpha.kubernetes.io/ttl": "0"}
    eventually(reader(api, f"{NODES}/{name}"), lambda node: node["metadata"].get("annotations") == ttl)


def test_a_registration_is_told(api: Api, name: str) -> None:
    node = api.create(NODES, {"metadata": {"name": name}})
    selector = f"involvedObject.uid={node['metadata']['uid']},reason=RegisteredNode"
    listed = eventually(
        lambda: api.ask("GET", EVENTS, fieldSelector=selector), lambda answer: bool(answer.json()["items"])
    )
    (event,) = listed.json()["items"]
    assert event["message"] == f"Node {name} event: Registered Node {name} in Controller"
    assert event["source"] == {"component": "node-controller"}
    about = {"kind": "Node", "name": name, "uid": node["metadata"]["uid"], "apiVersion": "v1"}
    assert event["involvedObject"] == about
    assert (event["type"], event["count"], event["reportingComponent"]) == ("Normal", 1, "node-controller")


def test_a_deleted_node_takes_its_lease_and_csinode_along(api: Api, name: str) -> None:
    node = api.create(NODES, {"metadata": {"name": name}})
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    metadata = {"name": name, "ownerReferences": [owner]}
    api.create(LEASES, {"metadata": metadata, "spec": {"holderIdentity": name}})
    api.create(CSINODES, {"metadata": metadata, "spec": {"drivers": None}})
    api.create(LEASES, {"metadata": {"name": f"{name}-free"}, "spec": {}})
    api.ask("DELETE", f"{NODES}/{name}")
    for path in (LEASES, CSINODES):
        eventually(lambda path=path: api.ask("GET", f"{path}/{name}"), lambda answer: answer.status == 404, within=60)
    assert api.ask("GET", f"{LEASES}/{name}-free").status == 200


@dataclass
class Patience:
    """A server that waits for silent nodes; time passes at the embedded one only when we say so."""

    api: Api
    seconds: float = 0.0


@pytest.fixture
def patience(server: str, api: Api) -> Iterator[Patience]:
    """The server under test."""
    found = Patience(api)
    if server == "real":
        yield found
        return
    options = NodeMonitorOptions(period_seconds=0.02, monotonic=lambda: found.seconds)
    with EmbeddedCluster(node_monitor=options) as cluster:
        found.api = cluster.api
        yield found


def test_a_silent_node_becomes_unknown_and_comes_back(patience: Patience, name: str) -> None:
    kinds, api = ("Ready", "MemoryPressure", "NetworkUnavailable"), patience.api
    given = [condition(kind, str(kind == "Ready")) for kind in kinds]
    neighbour(api, name)
    made = zoned(api, name, name, given)
    twice = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}

    def look() -> Any:
        """Read the node while its neighbour stays alive: it shows another heartbeat each time."""
        patience.seconds += 15
        heartbeat = datetime(2026, 1, 2, 4, tzinfo=UTC) + timedelta(seconds=patience.seconds)
        alive = {"type": "Ready", "lastHeartbeatTime": heartbeat.strftime("%Y-%m-%dT%H:%M:%SZ")}
        api.ask("PATCH", f"{NODES}/{name}-neighbour/status", {"status": {"conditions": [alive]}})
        return api.get(f"{NODES}/{name}")

    node = eventually(look, lambda node: taints(node) == twice, within=120, every=0.1)
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
    api.ask("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [alive]}})
    settles_at(api, name)


def told(one: dict[str, str]) -> tuple[str, str, str, str]:
    return one["type"], one["status"], one["reason"], one["message"]


def test_a_pod_of_a_node_waits_for_the_node_to_let_it_go(api: Api, name: str) -> None:
    ready(api, name)
    spec = {"nodeName": name, "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    deleted = api.ask("DELETE", f"{PODS}/{name}").json()
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30
    assert deleted["metadata"]["deletionTimestamp"]
    assert api.ask("GET", f"{PODS}/{name}").status == 200
    last_word = {"gracePeriodSeconds": 0, "preconditions": {"uid": deleted["metadata"]["uid"]}}
    assert api.ask("DELETE", f"{PODS}/{name}", last_word).status == 200
    assert api.ask("GET", f"{PODS}/{name}").status == 404
