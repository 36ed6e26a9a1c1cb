"""Tables: what `kubectl get` prints."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.api import CSINODES, EVENTS, LEASES, NODES, PODS, SIGNING_REQUESTS, TABLE, Api
from tests.contract.conditions import condition

COLUMNS = {
    NODES: [
        ("Name", "string", "name", 0),
        ("Status", "string", "", 0),
        ("Roles", "string", "", 0),
        ("Age", "string", "", 0),
        ("Version", "string", "", 0),
        ("Internal-IP", "string", "", 1),
        ("External-IP", "string", "", 1),
        ("OS-Image", "string", "", 1),
        ("Kernel-Version", "string", "", 1),
        ("Container-Runtime", "string", "", 1),
    ],
    LEASES: [("Name", "string", "name", 0), ("Holder", "string", "", 0), ("Age", "string", "", 0)],
    CSINODES: [("Name", "string", "name", 0), ("Drivers", "integer", "", 0), ("Age", "string", "", 0)],
    EVENTS: [
        ("Last Seen", "string", "", 0),
        ("Type", "string", "", 0),
        ("Reason", "string", "", 0),
        ("Object", "string", "", 0),
        ("Subobject", "string", "", 1),
        ("Source", "string", "", 1),
        ("Message", "string", "", 0),
        ("First Seen", "string", "", 1),
        ("Count", "string", "", 1),
        ("Name", "string", "name", 1),
    ],
    PODS: [
        ("Name", "string", "name", 0),
        ("Ready", "string", "", 0),
        ("Status", "string", "", 0),
        ("Restarts", "string", "", 0),
        ("Age", "string", "", 0),
        ("IP", "string", "", 1),
        ("Node", "string", "", 1),
        ("Nominated Node", "string", "", 1),
        ("Readiness Gates", "string", "", 1),
    ],
    "/api/v1/namespaces": [("Name", "string", "name", 0), ("Status", "string", "", 0), ("Age", "string", "", 0)],
    SIGNING_REQUESTS: [
        ("Name", "string", "name", 0),
        ("Age", "string", "", 0),
        ("SignerName", "string", "", 0),
        ("Requestor", "string", "", 0),
        ("RequestedDuration", "string", "", 0),
        ("Condition", "string", "", 0),
    ],
}


def columns(table: dict[str, Any]) -> list[tuple[str, str, str, int]]:
    return [(one["name"], one["type"], one["format"], one["priority"]) for one in table["columnDefinitions"]]


@pytest.mark.parametrize("path", list(COLUMNS), ids=lambda path: path.rpartition("/")[2])
def test_the_columns_are_kubernetes_own(api: Api, path: str) -> None:
    table = api.ask("GET", path, accept=TABLE).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert columns(table) == COLUMNS[path]


def test_a_node_without_a_status_is_a_row_of_unknowns(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    table = api.ask("GET", f"{NODES}/{name}", accept=TABLE).json()
    (row,) = table["rows"]
    cells = row["cells"]
    assert cells[:3] == [name, "Unknown", "<none>"]
    assert cells[4:] == ["", "<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]


def test_a_node_is_a_row_of_its_facts(api: Api, name: str) -> None:
    labels = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/edge": "", "kubernetes.io/role": "old"}
    info = {
        "kubeletVersion": "v1.36.3",
        "osImage": "Some Linux",
        "kernelVersion": "6.1",
        "architecture": "amd64",
        "containerRuntimeVersion": "fake://1",
    }
    status = {
        "conditions": [condition("Ready", "True")],
        "addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}, {"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": info,
    }
    metadata = {"name": name, "labels": labels}
    api.create(NODES, {"metadata": metadata, "spec": {"unschedulable": True}, "status": status})
    (row,) = api.ask("GET", f"{NODES}/{name}", accept=TABLE).json()["rows"]
    assert row["cells"][:3] == [name, "Ready,SchedulingDisabled", "edge,old,worker"]
    assert row["cells"][4:] == ["v1.36.3", "10.0.0.1", "192.0.2.1", "Some Linux", "6.1 (amd64)", "fake://1"]


@pytest.mark.parametrize(("status", "word"), [("False", "NotReady"), ("Unknown", "NotReady"), ("True", "Ready")])
def test_readiness_is_one_word(api: Api, name: str, status: str, word: str) -> None:
    api.create(NODES, {"metadata": {"name": name}, "status": {"conditions": [condition("Ready", status)]}})
    (row,) = api.ask("GET", f"{NODES}/{name}", accept=TABLE).json()["rows"]
    assert row["cells"][1] == word


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Lease")]
)
def test_a_row_carries_its_object(api: Api, name: str, include: str, kind: str) -> None:
    api.create(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "me"}})
    query = {"includeObject": include} if include else {}
    (row,) = api.ask("GET", f"{LEASES}/{name}", accept=TABLE, **query).json()["rows"]
    assert row["object"]["kind"] == kind
    assert row["object"]["metadata"]["name"] == name
    assert row["cells"][:2] == [name, "me"]


def test_a_row_can_do_without_its_object(api: Api, name: str) -> None:
    api.create(LEASES, {"metadata": {"name": name}, "spec": {}})
    (row,) = api.ask("GET", f"{LEASES}/{name}", accept=TABLE, includeObject="None").json()["rows"]
    assert row["object"] is None


def test_an_event_is_a_row(api: Api, name: str) -> None:
    about = {"kind": "Node", "name": name}
    more = {"reason": "Rebooted", "type": "Warning", "message": " it did ", "source": {"component": "c", "host": "h"}}
    api.create(EVENTS, {"metadata": {"name": name}, "involvedObject": about, **more})
    (row,) = api.ask("GET", f"{EVENTS}/{name}", accept=TABLE).json()["rows"]
    expected = ["<unknown>", "Warning", "Rebooted", f"node/{name}", "", "c, h", "it did", "<unknown>", 1, name]
    assert row["cells"] == expected


def test_a_watch_of_tables_tells_its_columns_once(api: Api, name: str) -> None:
    with api.watch(LEASES, accept=TABLE, fieldSelector=f"metadata.name={name}") as watch:
        api.create(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "me"}})
        api.ask("DELETE", f"{LEASES}/{name}")
        first, second = watch.next(), watch.next()
    assert (first["type"], second["type"]) == ("ADDED", "DELETED")
    assert columns(first["object"]) == COLUMNS[LEASES]
    assert not second["object"]["columnDefinitions"]
    assert second["object"]["rows"][0]["cells"][:2] == [name, "me"]


def test_metadata_can_be_had_alone(api: Api, name: str) -> None:
    api.create(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "me"}})
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    found = api.ask("GET", f"{LEASES}/{name}", accept=accept).json()
    assert (found["kind"], found["apiVersion"], found["metadata"]["name"]) == (
        "PartialObjectMetadata",
        "meta.k8s.io/v1",
        name,
    )
    assert "spec" not in found
