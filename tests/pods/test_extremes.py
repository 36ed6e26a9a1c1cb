"""Statuses of pods that anybody with `patch pods/status` may write: the node lives on, and so do its other pods."""

from typing import Any

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import MERGE_PATCH
from tests.cluster.waiting import eventually
from tests.pods.home import Home

BRISK = ("--node-lease-duration-seconds=4", "--node-status-update-frequency=1s")
CRASHING = {"fake-kubelet.dev/run-for": "0s", "fake-kubelet.dev/exit-code": "1"}


FAR, NEAR = "9999-12-31T23:59:59Z", "0001-01-02T00:00:00Z"
ODD_ENDING = {"exitCode": -1, "startedAt": FAR, "finishedAt": NEAR}
FAR_START = {"startTime": FAR}
# What somebody writes: to the status, and to the status of the container.
WRITTEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "far-start": (FAR_START, {}),
    "negative-restarts": ({}, {"restartCount": -(2**31)}),
    "most-restarts": ({}, {"restartCount": 2**31 - 1}),
    "far-container": ({}, {"state": {"running": {"startedAt": FAR}}}),
    "odd-ending": ({}, {"state": {"terminated": ODD_ENDING}, "lastState": {"terminated": ODD_ENDING}}),
}


def test_statuses_that_others_wrote_end_neither_the_node_nor_other_pods(home: Home) -> None:
    agent = home.start(*BRISK)
    for name in WRITTEN:
        annotations = CRASHING if "restarts" in name else {}
        home.create(home.bare_pod(name, annotations=annotations, activeDeadlineSeconds=3600))
    home.create(home.bare_pod("good"))
    home.wait_until_running(len(WRITTEN) + 1)
    for name, (status, of_container) in WRITTEN.items():
        (container,) = eventually(lambda name=name: home.pod(name)["status"]["containerStatuses"])  # type: ignore[misc]
        written = {"containerStatuses": [container | of_container]} if of_container else {}
        home.patch_status(name, status | written, MERGE_PATCH)
    check_it_lives(home, agent, "after")
    agent.stop()
    again = home.start(*BRISK)  # the statuses are there at every start
    check_it_lives(home, again, "later")
    home.delete_pods()
    home.wait_until_empty()
    assert "Unexpected error" not in again.log_text()


def check_it_lives(home: Home, agent: AgentProcess, pod_name: str) -> None:
    """It takes on another pod, keeps its Lease, and has not stumbled."""
    home.create(home.bare_pod(pod_name))
    home.wait_until_phase(pod_name, "Running")
    home.wait_until_renewed()
    assert home.phases()["good"] == "Running"
    assert agent.running
    assert "Unexpected error" not in agent.log_text()


def test_a_deadline_of_a_pod_that_started_in_the_far_future_has_not_passed(home: Home) -> None:
    """As with a kubelet, which compares what has passed since then, less than nothing, with the deadline."""
    home.start(*BRISK)
    home.create(home.bare_pod("odd"))
    home.wait_until_running(1)
    home.patch_status("odd", FAR_START, MERGE_PATCH)
    home.patch("Pod", "odd", {"spec": {"activeDeadlineSeconds": 1}})
    home.create(home.bare_pod("clock", activeDeadlineSeconds=2))
    home.wait_until_phase("clock", "Failed")  # the other's, which is older and shorter, would have passed before
    assert home.phases()["odd"] == "Running"
    assert home.pod("odd")["status"]["startTime"] == FAR
