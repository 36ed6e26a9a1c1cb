"""Discovery, versions, health, reviews and signing requests."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.cluster.api import SIGNING_REQUESTS, Api

# Made once by openssl for the name system:node:contract; nobody has its key.
PEM = """-----BEGIN CERTIFICATE REQUEST-----
MIHyMIGYAgEAMDYxFTATBgNVBAoMDHN5c3RlbTpub2RlczEdMBsGA1UEAwwUc3lz
dGVtOm5vZGU6Y29udHJhY3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT6oBsx
p8iA2aN2k6/vpGHBJ+6B6XtIvtySdZKS7d3JIn+A1Gwb2o+ks782i9/TCXn10Hku
XbgADWk7IxIKUAg5oAAwCgYIKoZIzj0EAwIDSQAwRgIhAN4vPv5GEW07kgTk/Csv
0Q7biN+1GkzwjGFOPwa4rUAEAiEA5iNfEwq3gwJL6apnnw01/sstMrFrZhanKZZe
VxLN0Jc=
-----END CERTIFICATE REQUEST-----
"""


def described(listed: Any, name: str) -> Any:
    (found,) = [one for one in listed["resources"] if one["name"] == name]
    kept = ("name", "singularName", "namespaced", "kind", "shortNames", "categories")
    return {field: found[field] for field in kept if field in found} | {"verbs": set(found["verbs"])}


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("/api/v1", "nodes", ("node", False, "Node", ["no"])),
        ("/api/v1", "nodes/status", ("", False, "Node", None)),
        ("/api/v1", "pods", ("pod", True, "Pod", ["po"])),
        ("/api/v1", "events", ("event", True, "Event", ["ev"])),
        ("/api/v1", "namespaces", ("namespace", False, "Namespace", ["ns"])),
        ("/apis/coordination.k8s.io/v1", "leases", ("lease", True, "Lease", None)),
        ("/apis/storage.k8s.io/v1", "csinodes", ("csinode", False, "CSINode", None)),
        ("/apis/events.k8s.io/v1", "events", ("event", True, "Event", ["ev"])),
    ],
)
def test_a_resource_is_discovered(api: Api, path: str, name: str, expected: tuple[Any, ...]) -> None:
    listed = api.get(path)
    assert listed["kind"] == "APIResourceList"
    assert listed["groupVersion"] == path.removeprefix("/apis/").removeprefix("/api/")
    found = described(listed, name)
    assert (found["singularName"], found["namespaced"], found["kind"], found.get("shortNames")) == expected
    whole = {"create", "delete", "get", "list", "patch", "update", "watch"}
    assert found["verbs"] - {"deletecollection"} == ({"get", "patch", "update"} if "/" in name else whole)


def test_groups_are_discovered(api: Api) -> None:
    groups = {one["name"]: one["preferredVersion"] for one in api.get("/apis")["groups"]}
    for group in ("coordination.k8s.io", "storage.k8s.io", "certificates.k8s.io", "events.k8s.io"):
        assert groups[group] == {"groupVersion": f"{group}/v1", "version": "v1"}
        assert api.get(f"/apis/{group}")["kind"] == "APIGroup"


def test_the_version_is_told(api: Api) -> None:
    version = api.get("/version")
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
def test_health_is_ok(api: Api, path: str) -> None:
    answer = api.ask("GET", path, accept="*/*")
    assert (answer.status, answer.body) == (200, b"ok")


def test_an_unknown_token_is_not_authenticated(api: Api) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    answer = api.ask("POST", path, {"spec": {"token": "nobody.knows"}})
    assert (answer.status, answer.json()["kind"]) == (201, "TokenReview")
    assert not answer.json()["status"].get("authenticated")


@pytest.mark.parametrize("kind", ["subjectaccessreviews", "selfsubjectaccessreviews"])
def test_an_administrator_may_everything(api: Api, kind: str) -> None:
    attributes = {"resourceAttributes": {"verb": "get", "resource": "nodes", "subresource": "proxy"}}
    who = {"user": "kubernetes-super-admin", "groups": ["system:masters"]} if kind.startswith("subject") else {}
    answer = api.ask("POST", f"/apis/authorization.k8s.io/v1/{kind}", {"spec": attributes | who})
    assert (answer.status, answer.json()["status"]["allowed"]) == (201, True)


def signing_request(name: str) -> dict[str, Any]:
    spec = {
        "request": base64.b64encode(PEM.encode()).decode(),
        "signerName": "example.com/contract",
        "usages": ["digital signature", "client auth"],
    }
    return {"metadata": {"name": name}, "spec": spec, "status": {"certificate": "bWU="}}


def test_a_signing_request_knows_who_asks(api: Api, name: str) -> None:
    made = api.create(SIGNING_REQUESTS, signing_request(name))
    assert made["spec"]["username"]
    assert "system:authenticated" in made["spec"]["groups"]
    assert made["status"] == {}


def test_a_signing_request_must_be_one(api: Api, name: str) -> None:
    answer = api.ask("POST", SIGNING_REQUESTS, {"metadata": {"name": name}, "spec": {}})
    faults = (
        "[spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST, spec.usages: Required value, "
        "spec.signerName: Required value]"
    )
    message = f'CertificateSigningRequest.certificates.k8s.io "{name}" is invalid: {faults}'
    assert answer.refusal == (422, "Invalid", message)


def test_approval_and_certificate_are_separate_writes(api: Api, name: str) -> None:
    made = api.create(SIGNING_REQUESTS, signing_request(name))
    approved = {"type": "Approved", "status": "True", "reason": "Contract", "message": "told"}
    path = f"{SIGNING_REQUESTS}/{name}"
    ignored = api.ask("PUT", f"{path}/status", made | {"status": {"conditions": [approved]}})
    assert ignored.status in {200, 422}
    answer = api.ask("PUT", f"{path}/approval", made | {"status": {"conditions": [approved]}})
    assert answer.status == 200, answer.json()
    (condition,) = answer.json()["status"]["conditions"]
    assert condition["lastUpdateTime"]
    assert condition["lastTransitionTime"]
    assert condition | approved == condition
