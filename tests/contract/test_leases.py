"""Leases: the renewals of a node, and the quirks a node agent must know."""

from __future__ import annotations

import pytest

from tests.cluster.api import LEASES, MERGE_PATCH, STRATEGIC, Api

LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def lease(name: str, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": name, **spec}}


def test_a_lease_is_kept_as_it_is(api: Api, name: str) -> None:
    spec = {"leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.678901Z"}
    made = api.create(LEASES, lease(name, **spec))
    assert made["apiVersion"] == "coordination.k8s.io/v1"
    assert made["spec"] == {"holderIdentity": name, **spec}


def test_a_lease_is_renewed_by_replacing_it(api: Api, name: str) -> None:
    made = api.create(LEASES, lease(name, renewTime="2026-01-02T03:04:05.678901Z"))
    made["spec"]["renewTime"] = "2026-01-02T03:04:15.678901Z"
    renewed = api.ask("PUT", f"{LEASES}/{name}", made)
    assert renewed.status == 200
    assert int(renewed.json()["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert renewed.json()["spec"]["renewTime"] == "2026-01-02T03:04:15.678901Z"


def test_a_renewal_need_not_repeat_the_namespace(api: Api, name: str) -> None:
    made = api.create(LEASES, lease(name))
    metadata = {"name": name, "resourceVersion": made["metadata"]["resourceVersion"]}
    renewed = {"holderIdentity": name, "renewTime": "2026-01-02T03:04:15.678901Z"}
    answer = api.ask("PUT", f"{LEASES}/{name}", {"metadata": metadata, "spec": renewed})
    assert answer.status == 200, answer.json()
    assert api.get(f"{LEASES}/{name}")["spec"] == renewed


def test_a_renewal_may_not_name_another_namespace(api: Api, name: str) -> None:
    made = api.create(LEASES, lease(name))
    made["metadata"]["namespace"] = "default"
    answer = api.ask("PUT", f"{LEASES}/{name}", made)
    message = "the namespace of the provided object does not match the namespace sent on the request"
    assert answer.refusal == (400, "BadRequest", message)


def test_a_remembered_lease_put_to_a_missing_one_conflicts(api: Api, name: str) -> None:
    made = api.create(LEASES, lease(name))
    api.ask("DELETE", f"{LEASES}/{name}")
    answer = api.ask("PUT", f"{LEASES}/{name}", made)
    assert answer.refusal == (
        409,
        "Conflict",
        f'Operation cannot be fulfilled on leases.coordination.k8s.io "{name}": StorageError: invalid object, Code: 4, '
        f"Key: /registry/leases/kube-node-lease/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: {made['metadata']['uid']}, UID in object meta: ",
    )


def test_a_put_without_a_uid_creates_the_lease(api: Api, name: str) -> None:
    answer = api.ask("PUT", f"{LEASES}/{name}", lease(name))
    assert answer.status == 201
    assert answer.json()["metadata"]["uid"]


@pytest.mark.parametrize(
    ("renewed", "rest", "wanted"),
    [
        pytest.param("2026-01-02T03:04:05Z", "Z", ".000000", id="no decimals"),
        pytest.param("2026-01-02T03:04:05.123Z", ".123Z", ".000000", id="three decimals"),
        pytest.param("2026-01-02T03:04:05.1234567Z", "7Z", "Z07:00", id="seven decimals"),
        pytest.param("yesterday", "yesterday", "2006", id="no time at all"),
    ],
)
def test_a_renewal_has_six_decimals(api: Api, name: str, renewed: str, rest: str, wanted: str) -> None:
    answer = api.ask("POST", LEASES, lease(name, renewTime=renewed))
    parsing = f'parsing time "{renewed}" as "{LAYOUT}": cannot parse "{rest}" as "{wanted}"'
    message = f'Lease in version "v1" cannot be handled as a Lease: {parsing}'
    assert answer.refusal == (400, "BadRequest", message)


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC])
def test_a_patched_renewal_has_six_decimals(api: Api, name: str, content_type: str) -> None:
    api.create(LEASES, lease(name))
    code, reason, message = api.ask(
        "PATCH", f"{LEASES}/{name}", {"spec": {"renewTime": "2026-01-02T03:04:05Z"}}, content_type=content_type
    ).refusal
    assert (code, reason) == (422, "Invalid")
    assert message.startswith(' "" is invalid: patch: Invalid value: ')
    assert message.endswith('cannot parse "Z" as ".000000"')


def test_a_lease_lasts_longer_than_nothing(api: Api, name: str) -> None:
    answer = api.ask("POST", LEASES, lease(name, leaseDurationSeconds=0))
    fault = "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"
    assert answer.refusal == (422, "Invalid", f'Lease.coordination.k8s.io "{name}" is invalid: {fault}')
