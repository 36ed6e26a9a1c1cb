from datetime import UTC, datetime

import pytest

from agent.core.lease import new_lease, renewed
from tests.fakes import START


def test_a_new_lease_is_the_one_a_kubelet_writes():
    assert new_lease("n1", duration_seconds=40, owner_uid="u", now=START) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "n1",
            "namespace": "kube-node-lease",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}],
        },
        "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.678901Z"},
    }


def test_a_whole_second_is_still_written_with_six_decimals():
    lease = new_lease("n1", duration_seconds=40, owner_uid="u", now=datetime(2026, 1, 1, tzinfo=UTC))
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"


def test_renewal_leaves_holder_owner_and_version_alone():
    old = {"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}}
    assert renewed(old, duration_seconds=40, now=START) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.678901Z"},
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2026-01-02T04:04:05.000000Z", "2026-01-02T04:04:05.000001Z"),
        ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678902Z"),
        ("2026-01-02T02:04:05.000000Z", "2026-01-02T03:04:05.678901Z"),
        ("9999-12-31T23:59:59.000000Z", "9999-12-31T23:59:59.000001Z"),
        ("9999-12-31T23:59:59.999999Z", "2026-01-02T03:04:05.678901Z"),
        ("9999-12-31T23:59:59-23:59", "2026-01-02T03:04:05.678901Z"),
        ("0001-01-01T00:00:00+23:59", "2026-01-02T03:04:05.678901Z"),
        (["2026-01-02T04:04:05Z"], "2026-01-02T03:04:05.678901Z"),
        ("2026-01-02T04:04:05", "2026-01-02T03:04:05.678901Z"),
        (7, "2026-01-02T03:04:05.678901Z"),
        ("soon", "2026-01-02T03:04:05.678901Z"),
    ],
    ids=[
        "the clock went back",
        "the clock stands still",
        "the clock goes on",
        "there is little time left",
        "there is nothing later",
        "after the end of the calendar",
        "before its beginning",
        "a list",
        "a time of nowhere",
        "a number",
        "a word",
    ],
)
def test_a_renewal_is_later_than_the_one_before(before, after):
    lease = {"metadata": {}, "spec": {"renewTime": before}}
    assert renewed(lease, duration_seconds=40, now=START)["spec"]["renewTime"] == after
