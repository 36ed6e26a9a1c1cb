from datetime import UTC, datetime

import pytest

from agent.core.story import LogOptions, container_log, waiting_reason

BEGIN, END = "2026-01-01T10:00:00Z", "2026-01-01T10:00:30Z"


def pod(state, last=None):
    status = {"name": "c", "image": "nginx:1", "state": state, "lastState": last or {}}
    return {"metadata": {"name": "web", "namespace": "default"}, "status": {"containerStatuses": [status]}}


ENDED = pod({"terminated": {"startedAt": BEGIN, "finishedAt": END, "exitCode": 3, "reason": "Error"}})


def test_a_container_tells_its_life_and_that_nothing_was_executed():
    first, last = container_log(ENDED, "c", LogOptions()).decode().splitlines()
    assert first == "fake-kubelet: container c of nginx:1 runs in name only, nothing is executed on this node"
    assert last == "fake-kubelet: container c ended with exit code 3 (Error)"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (LogOptions(tail_lines=1), 1),
        (LogOptions(tail_lines=0), 0),
        (LogOptions(tail_lines=9), 2),
        (LogOptions(since=datetime(2026, 1, 1, 10, 0, 10, tzinfo=UTC)), 1),
    ],
)
def test_only_the_lines_that_are_wanted_come(options, lines):
    assert len(container_log(ENDED, "c", options).splitlines()) == lines


def test_timestamps_stand_before_each_line_and_bytes_have_a_limit():
    text = container_log(ENDED, "c", LogOptions(timestamps=True))
    assert text.startswith(b"2026-01-01T10:00:00.000000000Z fake-kubelet:")
    assert container_log(ENDED, "c", LogOptions(limit_bytes=4)) == b"fake"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"running": {"startedAt": BEGIN}}, ""),
        ({"waiting": {"reason": "ImagePullBackOff"}}, "ImagePullBackOff"),
        ({}, "ContainerCreating"),
    ],
)
def test_a_container_that_was_not_started_has_no_log_yet(state, reason):
    assert waiting_reason(pod(state), "c") == reason
