"""Pods: what a node agent reads and writes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.api import NODES, PODS, Api

CONTAINER = {"name": "c", "image": "registry.example.com/i:1"}


def pod(api: Api, name: str, **spec: Any) -> Any:
    given = {"containers": [CONTAINER], "automountServiceAccountToken": False, "schedulerName": "nobody", **spec}
    return api.create(PODS, {"metadata": {"name": name}, "spec": given})


def test_a_pod_is_born_pending(api: Api, name: str) -> None:
    made = api.ask(
        "POST",
        PODS,
        {
            "metadata": {"name": name},
            "spec": {"containers": [CONTAINER], "automountServiceAccountToken": False, "schedulerName": "nobody"},
            "status": {"phase": "Running"},
        },
    )
    assert made.json()["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made.json()["metadata"]["generation"] == 1


def test_a_pod_gets_its_defaults(api: Api, name: str) -> None:
    spec = pod(api, name)["spec"]
    waits = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    assert spec == {
        "containers": [
            CONTAINER
            | {
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "automountServiceAccountToken": False,
        "securityContext": {},
        "schedulerName": "nobody",
        "tolerations": waits,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
    ids=["nothing", "a request", "limits", "less than its limits"],
)
def test_quality_of_service_follows_the_resources(
    api: Api, name: str, resources: dict[str, dict[str, str]], quality: str
) -> None:
    made = pod(api, name, containers=[CONTAINER | {"resources": resources}])
    assert made["status"]["qosClass"] == quality


def test_a_pod_needs_containers(api: Api, name: str) -> None:
    answer = api.ask("POST", PODS, {"metadata": {"name": name}})
    assert answer.refusal == (422, "Invalid", f'Pod "{name}" is invalid: spec.containers: Required value')


def test_a_status_patch_insists_on_the_uid_and_merges_conditions(api: Api, name: str) -> None:
    made = pod(api, name)
    one = {"type": "Ready", "status": "False", "lastProbeTime": None, "lastTransitionTime": "2026-01-02T03:04:05Z"}
    patch = {"metadata": {"uid": made["metadata"]["uid"]}, "status": {"phase": "Failed", "conditions": [one]}}
    patched = api.ask("PATCH", f"{PODS}/{name}/status", patch).json()
    assert patched["status"] == {"phase": "Failed", "qosClass": "BestEffort", "conditions": [one]}
    second = {"status": {"conditions": [{"type": "Initialized", "status": "True"}]}}
    patched = api.ask("PATCH", f"{PODS}/{name}/status", second).json()
    assert {one["type"] for one in patched["status"]["conditions"]} == {"Ready", "Initialized"}


def test_a_pod_without_a_node_goes_at_once(api: Api, name: str) -> None:
    pod(api, name)
    deleted = api.ask("DELETE", f"{PODS}/{name}")
    assert (deleted.status, deleted.json()["kind"]) == (200, "Pod")
    assert api.ask("GET", f"{PODS}/{name}").status == 404


def test_a_terminal_pod_goes_at_once(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    pod(api, name, nodeName=name)
    api.ask("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Failed"}})
    api.ask("DELETE", f"{PODS}/{name}")
    assert api.ask("GET", f"{PODS}/{name}").status == 404


def test_a_deletion_bumps_the_generation(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    pod(api, name, nodeName=name)
    deleted = api.ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 7}).json()
    assert (deleted["metadata"]["deletionGracePeriodSeconds"], deleted["metadata"]["generation"]) == (7, 2)
    api.ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


def test_a_binding_assigns_a_pod_once(api: Api, name: str) -> None:
    pod(api, name)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": name},
    }
    answer = api.ask("POST", f"{PODS}/{name}/binding", binding)
    assert (answer.status, answer.json()["status"]) == (201, "Success")
    bound = api.get(f"{PODS}/{name}")
    assert bound["spec"]["nodeName"] == name
    assert [(one["type"], one["status"]) for one in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    again = api.ask("POST", f"{PODS}/{name}/binding", binding)
    assert again.refusal[:2] == (409, "Conflict")
    assert again.refusal[2].endswith(f'pod {name} is already assigned to node "{name}"')


def test_the_spec_of_a_pod_is_settled(api: Api, name: str) -> None:
    pod(api, name)
    code, reason, message = api.ask("PATCH", f"{PODS}/{name}", {"spec": {"hostNetwork": True}}).refusal
    assert (code, reason) == (422, "Invalid")
    assert f'Pod "{name}" is invalid: spec: Forbidden: pod updates may not change fields other than' in message


def test_an_image_may_change(api: Api, name: str) -> None:
    pod(api, name)
    patched = api.ask("PATCH", f"{PODS}/{name}", {"spec": {"containers": [{"name": "c", "image": "other:2"}]}})
    assert patched.status == 200, patched.json()
    assert patched.json()["spec"]["containers"][0]["image"] == "other:2"
    assert patched.json()["metadata"]["generation"] == 2
