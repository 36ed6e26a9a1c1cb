"""Pods that an API server accepts and nobody would write: whatever stands in them, a decision is made, and soon."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.patch import status_patch
from agent.core.pods.admission import (
    ALL_REJECTED,
    AdmissionContext,
    kill_for_preemption,
    rejected_status,
    rejection,
    victims,
)
from agent.core.pods.events import pod_events, removal_events
from agent.core.pods.info import pod_info
from agent.core.pods.lifecycle import next_status
from agent.core.pods.resources import PodRequest, request_of
from agent.core.pods.stats import pod_stats
from agent.core.pods.status import PodContext
from agent.core.pods.termination import KillRequest, termination
from agent.core.shutdown import GracePeriod, kill_for_shutdown, priority_groups
from agent.core.times import parse_time
from agent.minicluster.patches import strategic_merge
from agent.minicluster.pod_strategy import PODS
from tests.unit.core.pods.builders import NODE, NOW, Life, container, pod

FAR = "9999-12-31T23:59:59Z"

times = st.sampled_from(
    [
        FAR,
        "9999-12-31T23:59:59-23:59",
        "2199-12-31T23:59:59Z",
        "2026-01-02T03:04:04Z",
        "2026-01-02T03:04:05Z",
        "2025-01-02T03:04:05.999999Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "0001-01-01T00:00:00Z",
    ]
)
ints = st.sampled_from([0, 1, 5, 30, -1, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)])
durations = st.sampled_from(["", "0s", "-1s", "1ns", "2562047h47m16.854775807s", "9" * 5000 + "h", "1s" * 999, "∞"])
codes = st.sampled_from(["", "0", "1", "255", "256", "-1", "٣", "9" * 5000])


def some(**fields):
    """Objects with any of these fields, in any combination."""
    return st.fixed_dictionaries({}, optional=fields)


ran = st.fixed_dictionaries({"exitCode": ints}, optional={"startedAt": times, "finishedAt": times})
states = some(waiting=st.just({"reason": "x"}), running=some(startedAt=times), terminated=ran)
statuses = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["main", "first", "side", "debugger", "unknown"]),
            "state": states,
            "lastState": states,
            "restartCount": ints,
            "ready": st.booleans(),
        },
        optional={"containerID": st.just("fake://1"), "started": st.booleans()},
    ),
    max_size=5,
)
conditions = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Ready", "Initialized", "other"]), "status": st.sampled_from(["True", "x"])},
        optional={"lastTransitionTime": times},
    ),
    max_size=3,
)
probes = some(initialDelaySeconds=ints)


@st.composite
def pods(draw):
    """A pod with a status that anybody may have patched."""
    first = draw(some(startupProbe=probes, restartPolicy=st.sampled_from(["Always", "OnFailure", "Never"])))
    fields = draw(
        some(
            activeDeadlineSeconds=ints,
            terminationGracePeriodSeconds=ints,
            priority=ints,
            restartPolicy=st.sampled_from(["Always", "OnFailure", "Never"]),
        )
    )
    said = draw(
        some(
            **{
                "fake-kubelet.dev/run-for": durations,
                "fake-kubelet.dev/exit-code": codes,
                "fake-kubelet.dev/stop-after": durations,
                "run-for.fake-kubelet.dev/first": durations,
                "exit-code.fake-kubelet.dev/first": codes,
            }
        )
    )
    status = draw(
        some(
            phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
            startTime=times,
            conditions=conditions,
            containerStatuses=statuses,
            initContainerStatuses=statuses,
            ephemeralContainerStatuses=statuses,
        )
    )
    the_pod = pod(
        container(readinessProbe=draw(probes)),
        initContainers=[container("first", **first), container("side", restartPolicy="Always")],
        ephemeralContainers=[container("debugger")],
        annotations=said,
        ownerReferences=draw(st.sampled_from([[], [{"kind": "Job", "uid": "j"}]])),
        status=status,
        **fields,
    )
    the_pod["metadata"] |= draw(some(deletionTimestamp=times, deletionGracePeriodSeconds=ints, generation=ints))
    return the_pod


kill_requests = st.none() | st.builds(
    lambda seconds: KillRequest("Evicted", "why", seconds, NOW), st.sampled_from([0.0, 1.0, 30.0, 1e9])
)


@given(the_pod=pods(), kill_request=kill_requests)
def test_every_pod_has_a_next_status(the_pod, kill_request):
    now = NOW
    for seconds in (0, 0, 1, 3600, 10**9):
        now += timedelta(seconds=seconds)
        context = PodContext(
            now=now, host_ips=("192.0.2.1",), pod_ips=("10.0.0.2",), job_seconds=10.0, kill_request=kill_request
        )
        status, next_at = next_status(the_pod, context)
        assert next_at is None or next_at.tzinfo
        patch = status_patch(the_pod, status)
        pod_events(the_pod, status)
        the_pod = strategic_merge(the_pod, patch, PODS.merge_keys) if patch else the_pod


@given(the_pod=pods())
def test_every_pod_can_be_judged_ended_and_told_about(the_pod):
    wanted, info = request_of(the_pod), pod_info(the_pod)
    refused = rejection(the_pod, wanted, AdmissionContext(node=NODE, others=(wanted,)))
    rejected_status(the_pod, refused or ALL_REJECTED, FAR)
    termination(the_pod, kill_for_preemption(info, NOW))
    victims([info], {"pods": 1})
    removal_events(the_pod)
    list(pod_stats([info], NOW))
    for group in priority_groups([info], [GracePeriod(0, 30)]):
        termination(the_pod, kill_for_shutdown(info, group.seconds, NOW))


@pytest.mark.parametrize("began", [FAR, "2200-06-01T00:00:00Z"])
def test_a_deadline_that_began_in_the_far_future_has_not_passed(began):
    """As kubelet's activeDeadlineHandler: less than no time has passed."""
    life = Life(pod(activeDeadlineSeconds=5, status={"phase": "Pending", "startTime": began}))
    assert (life.status["phase"], life.status["startTime"]) == ("Running", began)
    assert life.after(60).status["phase"] == "Running"


def test_a_deadline_that_began_in_the_far_past_has_passed():
    life = Life(pod(activeDeadlineSeconds=2**31 - 1, status={"phase": "Pending", "startTime": "0001-01-01T00:00:00Z"}))
    assert life.status["phase"] == "Running"  # from 1970 on it would end in 2038
    early = pod(activeDeadlineSeconds=5, status={"phase": "Pending", "startTime": "0001-01-01T00:00:00Z"})
    assert (Life(early).status["phase"], Life(early).status["reason"]) == ("Failed", "DeadlineExceeded")


@pytest.mark.parametrize("count", [-(2**31), -1, 2**31 - 1])
def test_a_count_of_restarts_that_others_wrote_is_not_caught_up_with(count):
    ended = {"exitCode": 1, "startedAt": "2026-01-02T03:04:00Z", "finishedAt": "2026-01-02T03:04:01Z"}
    status = {"name": "main", "state": {"terminated": ended}, "lastState": {}, "restartCount": count, "ready": False}
    words = {"fake-kubelet.dev/run-for": "0s", "fake-kubelet.dev/exit-code": "1"}
    told = {"phase": "Running", "startTime": "2026-01-02T03:03:00Z", "containerStatuses": [status]}
    life = Life(pod(annotations=words, status=told)).after(3600)
    assert 0 < life.restarts() <= 2**31 - 1


class Counted(dict):
    """A container that counts how often it is asked for something."""

    looks = 0

    def get(self, *words):
        Counted.looks += 1
        return super().get(*words)


def test_the_work_grows_with_the_containers_and_not_with_their_square():
    """A pod of 1.5 MB has room for thousands of them, and nothing else runs meanwhile."""
    began = "2026-01-02T03:04:05Z"
    several = pod(
        initContainers=[Counted(container(f"i{number}")) for number in range(300)], status={"startTime": began}
    )
    context = PodContext(now=NOW, host_ips=("192.0.2.1",), pod_ips=("10.0.0.2",), job_seconds=10.0)
    assert next_status(several, context).status["phase"] == "Running"
    assert Counted.looks < 300 * 50


def test_a_word_of_a_quarter_of_a_megabyte_counts_as_not_said():
    life = Life(pod(annotations={"fake-kubelet.dev/run-for": "0s" * 100_000, "fake-kubelet.dev/stop-after": "1h" * 99}))
    assert life.after(3600).restarts() == 0
    assert termination(life.pod, kill_for_preemption(pod_info(life.pod), NOW)).at == NOW


def test_ports_of_the_node_are_taken_at_one_address_or_at_all_of_them():
    def clash(one, other):
        context = AdmissionContext(node=NODE, others=(PodRequest(host_ports=frozenset({other})),))
        found = rejection(pod(), PodRequest(host_ports=frozenset({one})), context)
        return found is not None and found.reason == "NodePorts"

    assert clash(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80))
    assert clash(("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80))
    assert clash(("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80))
    assert not clash(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80))
    assert not clash(("0.0.0.0", "UDP", 80), ("0.0.0.0", "TCP", 80))


@pytest.mark.parametrize("text", [FAR, "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_moment_is_aware_and_can_be_moved_by_a_century(text):
    for years in (-100, 100):
        assert datetime(1800, 1, 1, tzinfo=UTC) < parse_time(text) + timedelta(days=365 * years)
