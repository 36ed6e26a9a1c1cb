import pytest

from agent.core.shutdown import GracePeriod, grace_periods, requested_seconds

CRITICAL = 2_000_000_000


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
