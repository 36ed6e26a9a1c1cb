from datetime import UTC, datetime

import pytest

from agent.core.pods.info import pod_info
from agent.core.shutdown import GracePeriod, grace_periods, kill_for_shutdown, priority_groups, requested_seconds
from tests.unit.core.pods.builders import pod

CRITICAL = 2_000_000_000
PERIODS = (GracePeriod(0, 20), GracePeriod(1000, 5), GracePeriod(CRITICAL, 10))


def named(name, **spec):
    return pod_info(pod(**spec))._replace(name=name)


def names(pods):
    return [pod.name for pod in pods]


@pytest.mark.parametrize(
    ("whole", "critical", "by_priority", "expected"),
    [
        pytest.param(0, 0, [], (), id="nothing is held back by default"),
        pytest.param(30, 10, [], ((0, 20), (CRITICAL, 10)), id="critical pods have the end of the period"),
        pytest.param(30, 0, [], ((0, 30), (CRITICAL, 0)), id="no time for critical pods alone"),
        pytest.param(0, 0, [(1000, 5), (0, 60)], ((0, 60), (1000, 5)), id="lowest priority first, however listed"),
    ],
)
def test_pods_of_low_priority_go_first(whole, critical, by_priority, expected):
    assert grace_periods(whole, critical, [GracePeriod(*entry) for entry in by_priority]) == expected


def test_a_shutdown_is_held_back_for_the_sum_of_all_periods():
    assert requested_seconds(grace_periods(0, 0, [GracePeriod(0, 60), GracePeriod(1000, 5)])) == 65


def test_pods_end_by_priority_when_the_node_goes_down():
    pods = [named("c", priority=2_000_000_001), named("a", priority=-5), named("b", priority=999)]
    groups = priority_groups(pods, PERIODS)
    assert [(group.seconds, names(group.pods)) for group in groups] == [
        (20, ["a", "b"]),
        (10, ["c"]),
    ]
    assert [group.seconds for group in priority_groups([named("at", priority=1000)], PERIODS)] == [5]


def test_a_pod_has_no_longer_than_its_group_and_no_longer_than_it_wants():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert kill_for_shutdown(pod_info(pod(terminationGracePeriodSeconds=3)), 20, now).grace_seconds == 3.0
    order = kill_for_shutdown(pod_info(pod()), 20, now)
    assert (order.reason, order.grace_seconds) == ("Terminated", 20.0)
