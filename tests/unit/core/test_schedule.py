import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.schedule import ReportSchedule, TokenBucket, coalesced, jittered


@pytest.mark.parametrize(("rand", "seconds"), [(0.0, 10.0), (0.5, 10.2), (1.0, 10.4)])
def test_a_period_is_stretched_by_at_most_its_jitter(rand, seconds):
    assert jittered(10, 0.04, rand) == pytest.approx(seconds)


@given(now=st.floats(0, 1e6), rand=st.floats(0, 1, exclude_max=True))
def test_periods_end_together_and_stay_within_their_jitter(now, rand):
    latest = jittered(10, 0.04, rand)
    delay = coalesced(now, 10, latest)
    assert 10 <= delay <= latest
    moment = (now + delay) / 0.2
    assert delay == latest or moment == pytest.approx(round(moment), abs=1e-6)


def test_of_a_thousand_periods_most_end_at_one_of_two_moments():
    moments = {round(5 + coalesced(5, 10, jittered(10, 0.04, number / 1000)), 6) for number in range(500, 1000)}
    assert len(moments) <= 2


def test_the_first_report_is_always_due():
    assert ReportSchedule(300).due(0)


@pytest.mark.parametrize(("rand", "next_seconds"), [(0.0, 150), (0.5, 300), (1.0, 450)])
@pytest.mark.parametrize(
    "schedule", [ReportSchedule(300), ReportSchedule(300, last_seconds=-1)], ids=["first", "change"]
)
def test_after_a_change_or_a_first_report_the_next_is_spread(schedule, rand, next_seconds):
    after = schedule.after(0, changed=True, rand=rand)
    assert not after.due(next_seconds - 1)
    assert after.due(next_seconds)


def test_after_an_idle_report_the_next_comes_on_time():
    after = ReportSchedule(300, last_seconds=0, delay_seconds=50).after(350, changed=False, rand=0.0)
    assert not after.due(649)
    assert after.due(650)


def test_a_pace_has_a_few_turns_at_once_and_then_so_many_a_second():
    pace = TokenBucket(per_second=2, at_once=3)
    assert [pace.wait_seconds(100) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]
    assert pace.wait_seconds(101) == 0.5  # two were earned, and both were given away already
    assert [pace.wait_seconds(1000) for _ in range(4)] == [0, 0, 0, 0.5]  # no more are saved than can be used at once
