"""Statuses of pods that anybody with `patch pods/status` may write: the node lives on, and so do its other pods."""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.cluster.waiting import eventually
from tests.pods.home import Home

BRISK = ("--node-lease-duration-seconds=4", "--node-status-update-frequency=1s")
CRASHING = {"fake-kubelet.dev/run-for": "0s", "fake-kubelet.dev/exit-code": "1"}


def patch_status(home: Home, name: str, status: dict[str, Any]) -> None:
    words = ("--subresource=status", "--type=merge", f"--patch={json.dumps({'status': status})}")
    home.kubectl("patch", "pod", name, *words)


def renewed_at(home: Home) -> datetime:
    lease = home.plane.get("lease", home.name, "kube-node-lease")
    return datetime.fromisoformat(lease["spec"]["renewTime"])


def is_renewed(home: Home) -> None:
    before = renewed_at(home)
    eventually(lambda: renewed_at(home) > before, within=30)


def container_status(home: Home, **changes: Any) -> list[dict[str, Any]]:
    (status,) = home.pod("odd")["status"]["containerStatuses"]
    return [{**status, **changes}]


def far_start(home: Home) -> dict[str, Any]:
    return {"startTime": "9999-12-31T23:59:59Z"}


def negative_restarts(home: Home) -> dict[str, Any]:
    return {"containerStatuses": container_status(home, restartCount=-(2**31))}


def most_restarts(home: Home) -> dict[str, Any]:
    return {"containerStatuses": container_status(home, restartCount=2**31 - 1)}


def far_container(home: Home) -> dict[str, Any]:
    state = {"running": {"startedAt": "9999-12-31T23:59:59Z"}}
    return {"containerStatuses": container_status(home, state=state)}


def odd_ending(home: Home) -> dict[str, Any]:
    ended = {"exitCode": -1, "startedAt": "9999-12-31T23:59:59Z", "finishedAt": "0001-01-02T00:00:00Z"}
    return {"containerStatuses": container_status(home, state={"terminated": ended}, lastState={"terminated": ended})}


@pytest.mark.parametrize("written", [far_start, negative_restarts, most_restarts, far_container, odd_ending])
def test_a_status_that_others_wrote_ends_neither_the_node_nor_other_pods(home: Home, written: Any) -> None:
    agent = home.start(*BRISK)
    home.apply(
        home.bare_pod(
            "odd", annotations=CRASHING if "restarts" in written.__name__ else {}, activeDeadlineSeconds=3600
        ),
        home.bare_pod("good"),
    )
    home.wait_until_running(2)
    eventually(lambda: container_status(home), within=30)
    patch_status(home, "odd", written(home))
    home.apply(home.bare_pod("after"))
    eventually(lambda: home.phases()["after"] == "Running", within=40)
    is_renewed(home)
    assert agent.running, agent.log_text()[-2000:]
    assert "Unexpected error" not in agent.log_text()
    agent.stop()
    again = home.start(*BRISK)  # the status is there at every start
    home.apply(home.bare_pod("later"))
    eventually(lambda: home.phases()["later"] == "Running", within=40)
    is_renewed(home)
    assert again.running, again.log_text()[-2000:]
    assert "Unexpected error" not in again.log_text()
    home.kubectl("delete", "pod", "--all", "--wait=false")
    home.wait_until_empty(within=90)


def test_a_deadline_of_a_pod_that_started_in_the_far_future_has_not_passed(home: Home) -> None:
    """As with a kubelet, which compares what has passed since then, less than nothing, with the deadline."""
    home.start(*BRISK)
    home.apply(home.bare_pod("odd", activeDeadlineSeconds=20))
    home.wait_until_running(1)
    patch_status(home, "odd", far_start(home))
    home.apply(home.bare_pod("clock", activeDeadlineSeconds=25))
    eventually(lambda: home.phases()["clock"] == "Failed", within=90)  # by then the other's would have passed
    assert home.phases()["odd"] == "Running"
    assert home.pod("odd")["status"]["startTime"] == "9999-12-31T23:59:59Z"
