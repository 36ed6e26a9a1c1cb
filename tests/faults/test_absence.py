"""The node is away for so long that the cluster gives it up, evicts its pods, and then it comes back."""

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cluster.api import PODS
from tests.cluster.waiting import eventually
from tests.faults.member import Member

pytestmark = pytest.mark.slow

_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
# Five minutes by default; the taint, and who deletes the pods because of it, are the same.
_IMPATIENT = [
    {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    for word in ("unreachable", "not-ready")
]


@dataclass(frozen=True)
class Absence:
    """A node that was killed and given up, and another one, which is well."""

    member: Member
    spare: Member  # where all are silent, the cluster blames itself and evicts nobody
    evicted: set[str]  # the UIDs of the pods of the first
    ahead: datetime  # what the lease of the spare node said before the other was killed
    spare_ready: dict[str, Any]  # its condition at that time

    def pods(self) -> list[dict[str, Any]]:
        return pods_of(self.member)


def pods_of(member: Member) -> list[dict[str, Any]]:
    return member.api.items(f"{PODS}?labelSelector=app={member.name}")


def uids(pods: list[dict[str, Any]]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def is_leaving(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def are_running(pods: list[dict[str, Any]]) -> bool:
    return len(pods) == 3 and all(pod["status"]["phase"] == "Running" and not is_leaving(pod) for pod in pods)


@pytest.fixture(scope="session")
def plane(fragile_plane):
    return fragile_plane


@pytest.fixture(scope="module")
def start(plane, tmp_path_factory):
    """Starts a node by its name, and removes it in the end."""
    with ExitStack() as members:

        def start_one(name: str) -> Member:
            member = Member.started(plane, name, tmp_path_factory.mktemp(name), kubeconfig=plane.node_kubeconfig(name))
            members.callback(member.leave)
            return member

        yield start_one


@pytest.fixture(scope="module")
def deployed(plane, start):
    """A node with a Deployment of three whose pods fit there alone."""
    member = start(f"absent-{secrets.token_hex(3)}")
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": member.name},
        "tolerations": _IMPATIENT,
        "containers": [{"name": "main", "image": "pause:1"}],
    }
    template = {"metadata": {"labels": {"app": member.name}}, "spec": spec}
    wanted = {"replicas": 3, "selector": {"matchLabels": {"app": member.name}}, "template": template}
    plane.api.create(_DEPLOYMENTS, {"metadata": {"name": member.name}, "spec": wanted})
    yield member
    plane.api.delete(f"{_DEPLOYMENTS}/{member.name}")


@pytest.fixture(scope="module")
def absence(start, deployed) -> Absence:
    """The cluster after it has given the node up: half a minute of waiting, for all tests here."""
    member, spare = deployed, start(f"spare-{secrets.token_hex(3)}")
    eventually(lambda: are_running(pods_of(member)))
    before = uids(pods_of(member))
    ahead = datetime.now(UTC) + timedelta(hours=1)
    spare.patch_lease({"spec": {"renewTime": ahead.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})
    spare_ready = spare.condition("Ready")
    member.wait_until_renewed()  # so its last sign of life is later than that of the spare node, if no other counts
    member.process.kill()
    eventually(lambda: member.condition("Ready")["status"] == "Unknown", every=0.5)
    # Only the node could confirm that they ended, and it is away.
    eventually(lambda: uids([pod for pod in pods_of(member) if is_leaving(pod)]) == before, every=0.5)
    return Absence(member, spare, before, ahead, spare_ready)


def test_a_renewal_of_an_hour_ahead_as_before_a_clock_went_back_is_no_reason_to_be_given_up(absence):
    assert absence.spare.renewed_at() > absence.ahead
    ready = absence.spare.condition("Ready")
    assert ready["status"] == "True"
    assert ready["lastTransitionTime"] == absence.spare_ready["lastTransitionTime"]


def test_whoever_was_given_up_and_comes_back_leaves_nothing_hanging(absence, start):
    member = start(absence.member.name)
    eventually(lambda: are_running(absence.pods()) and not absence.evicted & uids(absence.pods()))
    eventually(member.is_whole)
    eventually(lambda: not member.node()["spec"].get("taints"))
