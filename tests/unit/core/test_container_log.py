from datetime import UTC, datetime

import pytest

from agent.core.container_log import LogOptions, LogUnavailable, run_log, same_run_log, selected

BEGIN, END = "2026-01-01T10:00:00Z", "2026-01-01T10:00:30Z"


def pod(state, last=None, **spec):
    status = {"name": "c", "image": "nginx:1", "state": state, "lastState": last or {}}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1", **spec}]},
        "status": {"containerStatuses": [status]},
    }


def container_log(found, container, options, now=datetime(2026, 1, 1, 11, tzinfo=UTC)):
    run = run_log(found, container, previous=options.previous, understands_commands=True)
    return selected(run.until(now), options)


def terminated(exit_code, identity="fake://1"):
    times = {"startedAt": BEGIN, "finishedAt": END}
    return {"terminated": {**times, "exitCode": exit_code, "reason": "Error", "containerID": identity}}


RUNNING, BACK_OFF = {"running": {"startedAt": BEGIN}}, {"waiting": {"reason": "CrashLoopBackOff"}}
LOST = {"terminated": {"startedAt": None, "finishedAt": None, "exitCode": 137}}
ENDED = pod(terminated(3))


def test_a_container_tells_its_life_and_that_nothing_was_executed():
    first, last = container_log(ENDED, "c", LogOptions()).decode().splitlines()
    assert first == "fake-kubelet: container c of nginx:1 runs in name only, nothing is executed on this node"
    assert last == "fake-kubelet: container c ended with exit code 3 (Error)"


@pytest.mark.parametrize("state", [{"running": {}}, {"running": {"startedAt": "2026-01-01T12:00:00+02:00"}}])
def test_a_container_runs_whenever_its_status_says_so(state):
    assert container_log(pod(state), "c", LogOptions(timestamps=True)).count(b"\n") == 1


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


def test_the_tail_of_a_log_is_its_end():
    assert container_log(ENDED, "c", LogOptions(tail_lines=1)).endswith(b"ended with exit code 3 (Error)\n")


def test_timestamps_stand_before_each_line_and_bytes_have_a_limit():
    text = container_log(ENDED, "c", LogOptions(timestamps=True))
    assert text.startswith(b"2026-01-01T10:00:00.000000000Z fake-kubelet:")
    assert container_log(ENDED, "c", LogOptions(limit_bytes=4)) == b"fake"


@pytest.mark.parametrize(
    ("found", "previous", "told"),
    [
        (pod(RUNNING, terminated(1)), False, None),
        (pod(RUNNING, terminated(1)), True, 1),
        (pod(terminated(2), terminated(1)), False, 2),
        (pod(BACK_OFF, terminated(1)), False, 1),
        (pod(BACK_OFF, terminated(1)), True, 1),
        (pod(LOST, terminated(1)), False, 1),
    ],
    ids=["running", "before it", "ended", "held back", "held back, before it", "lost"],
)
def test_a_log_is_that_of_one_life_as_a_kubelet_chooses_it(found, previous, told):
    first, *rest = container_log(found, "c", LogOptions(previous=previous)).decode().splitlines()
    assert "nginx:1 runs in name only" in first
    assert rest == ([f"fake-kubelet: container c ended with exit code {told} (Error)"] if told else [])


@pytest.mark.parametrize(
    ("found", "previous", "words"),
    [
        (pod({"waiting": {"reason": "PodInitializing"}}), False, "{} is waiting to start: PodInitializing"),
        (pod({"waiting": {"reason": "ErrImagePull"}}), False, "{} is waiting to start: image can't be pulled"),
        (
            pod({"waiting": {"reason": "ImagePullBackOff"}}),
            False,
            "{} is waiting to start: trying and failing to pull image",
        ),
        (pod({}), False, "{} is waiting to start - no logs yet"),
        (pod(LOST), False, "{} is terminated"),
        (pod(BACK_OFF, LOST), False, "{} is terminated"),
        (pod(RUNNING), True, "previous terminated {} not found"),
        (pod(RUNNING, LOST), True, "previous terminated {} not found"),
        ({"metadata": {"name": "web"}, "spec": {"containers": []}}, False, "{} is not available"),
    ],
)
def test_where_there_is_no_log_a_kubelets_words_say_why(found, previous, words):
    with pytest.raises(LogUnavailable) as refusal:
        container_log(found, "c", LogOptions(previous=previous))
    assert str(refusal.value) == words.format('container "c" in pod "web"')


PLAIN = {"command": ["sh", "-c", "echo hi; sleep 5.5; echo there; sleep 60; echo never; exit 1"]}


def at(second, microsecond=0):
    return datetime(2026, 1, 1, 10, 0, second, microsecond, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "lines"), [(at(0), ["hi"]), (at(5), ["hi"]), (at(5, 500_000), ["hi", "there"]), (at(59), ["hi", "there"])]
)
def test_the_log_of_a_plain_command_is_what_it_has_printed_by_now(now, lines):
    assert container_log(pod(RUNNING, **PLAIN), "c", LogOptions(), now).decode().splitlines() == lines


def test_a_command_that_has_ended_prints_nothing_after_its_end():
    assert container_log(pod(terminated(137), **PLAIN), "c", LogOptions()) == b"hi\nthere\n"
    again = {"running": {"startedAt": "2026-01-01T10:00:50Z"}}
    assert container_log(pod(again, terminated(137), **PLAIN), "c", LogOptions(previous=True)) == b"hi\nthere\n"


def test_a_line_of_a_command_has_the_time_at_which_it_was_printed():
    options = LogOptions(timestamps=True, since=at(5))
    assert container_log(pod(terminated(0), **PLAIN), "c", options) == b"2026-01-01T10:00:05.500000000Z there\n"


def test_a_command_that_says_nothing_before_it_is_not_understood_any_more_has_the_log_of_any_other():
    served = pod(RUNNING, command=["sh", "-c", "sleep 1; ./server"])
    assert b"in name only" in container_log(served, "c", LogOptions())


def test_where_commands_are_ignored_the_log_tells_the_containers_life():
    run = run_log(pod(RUNNING, **PLAIN), "c", previous=False, understands_commands=False)
    assert (len(run.lines), run.goes_on, "in name only" in run.lines[0].text) == (1, False, True)


def test_only_the_log_of_a_running_command_goes_on():
    def goes_on(found):
        return run_log(found, "c", previous=False, understands_commands=True).goes_on

    assert [goes_on(pod(RUNNING)), goes_on(pod(RUNNING, **PLAIN)), goes_on(pod(terminated(0), **PLAIN))] == [
        False,
        True,
        False,
    ]


def test_a_run_is_found_again_by_its_start_after_a_restart_and_lost_after_another():
    later, last = {"running": {"startedAt": "2026-01-01T10:00:50Z"}}, terminated(1)
    followed = same_run_log(pod(later, last, **PLAIN), "c", at(0))
    assert followed is not None
    assert ([line.text for line in followed.lines], followed.goes_on) == (["hi", "there"], False)
    assert same_run_log(pod(later, **PLAIN), "c", at(0)) is None
    assert same_run_log(pod(RUNNING, **PLAIN), "c", at(0)).goes_on
