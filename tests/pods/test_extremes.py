"""Statuses of pods that anybody with `patch pods/status` may write: the node lives on, and so do its other pods."""

from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH
from tests.cluster.waiting import eventually
from tests.pods.home import Home

BRISK = ("--node-lease-duration-seconds=4", "--node-status-update-frequency=1s")
CRASHING = {"fake-kubelet.dev/run-for": "0s", "fake-kubelet.dev/exit-code": "1"}


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
    home.create(
        home.bare_pod(
            "odd", annotations=CRASHING if "restarts" in written.__name__ else {}, activeDeadlineSeconds=3600
        ),
        home.bare_pod("good"),
    )
    home.wait_until_running(2)
    eventually(lambda: container_status(home))
    home.patch_status("odd", written(home), MERGE_PATCH)
    home.create(home.bare_pod("after"))
    home.wait_until_phase("after", "Running")
    home.wait_until_renewed()
    assert agent.running
    assert "Unexpected error" not in agent.log_text()
    agent.stop()
    again = home.start(*BRISK)  # the status is there at every start
    home.create(home.bare_pod("later"))
    home.wait_until_phase("later", "Running")
    home.wait_until_renewed()
    assert again.running
    assert "Unexpected error" not in again.log_text()
    home.delete_pods()
    home.wait_until_empty()


def test_a_deadline_of_a_pod_that_started_in_the_far_future_has_not_passed(home: Home) -> None:
    """As with a kubelet, which compares what has passed since then, less than nothing, with the deadline."""
    home.start(*BRISK)
    home.create(home.bare_pod("odd"))
    home.wait_until_running(1)
    home.patch_status("odd", far_start(home), MERGE_PATCH)
    home.patch("Pod", "odd", {"spec": {"activeDeadlineSeconds": 1}})
    home.create(home.bare_pod("clock", activeDeadlineSeconds=2))
    home.wait_until_phase("clock", "Failed")  # the other's, which is older and shorter, would have passed before
    assert home.phases()["odd"] == "Running"
    assert home.pod("odd")["status"]["startTime"] == "9999-12-31T23:59:59Z"
