"""The control plane itself fails."""

from contextlib import suppress

import pytest

from tests.cluster.api import NAMESPACES, Refused
from tests.cluster.waiting import eventually
from tests.faults.etcd import alarm

_LEASES = "kube-node-lease"


@pytest.fixture(scope="session")
def plane(fragile_plane):
    return fragile_plane


def test_the_api_server_is_away_for_a_while_and_comes_back(member, plane):
    plane.stop_component("kube-apiserver")
    try:
        member.wait_until_logged('"Failed to ensure lease exists, will retry"', times=3)
    finally:
        plane.start_component("kube-apiserver")
    member.wait_until_recovered()


def test_etcd_has_no_space_left(member, plane):
    alarm(plane.layout.etcd, on=True)
    try:
        # More than the five tries of one heartbeat.
        member.wait_until_logged('"Failed to update lease"', "database space exceeded", times=6)
    finally:
        alarm(plane.layout.etcd, on=False)
    member.wait_until_recovered()


def test_the_namespace_of_leases_is_gone_for_a_while(member, plane):
    namespace = f"{NAMESPACES}/{_LEASES}"
    before = plane.api.get(namespace)["metadata"]["uid"]
    plane.api.delete(namespace)
    member.wait_until_logged('"Failed to update lease"')

    def is_gone():
        """Whether there is none, or another: the API server makes it again by itself once a minute."""
        found = plane.api.ask("GET", namespace)
        return found.status == 404 or found.json()["metadata"]["uid"] != before

    eventually(is_gone)
    with suppress(Refused):  # it is there already
        plane.api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _LEASES}})
    member.wait_until_recovered()
