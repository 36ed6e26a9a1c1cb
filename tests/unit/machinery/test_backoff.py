import pytest

from agent.machinery.backoff import Backoff
from agent.ports import Unavailable

pytestmark = pytest.mark.anyio

AWAY = Unavailable("away")
BUSY = Unavailable("busy", retry_after_seconds=3)


def test_the_delay_doubles_up_to_the_longest_one_and_begins_again_after_a_success(clock):
    backoff = Backoff(clock, 0.2, 7.0)
    assert [backoff.next(AWAY) for _ in range(7)] == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0])
    backoff.reset()
    assert backoff.left_seconds == 0
    assert backoff.next(AWAY) == pytest.approx(0.2)


@pytest.mark.parametrize(("rand", "delay_seconds"), [(0.0, 3.0), (1.0, 4.5)])
def test_it_is_never_shorter_than_the_api_server_asks_for(clock, rand, delay_seconds):
    backoff = Backoff(clock, 0.2, 7.0, jitter=-0.04, rand=lambda: rand)
    assert backoff.next(BUSY) == pytest.approx(delay_seconds)
    assert backoff.interval_seconds == 3


@pytest.mark.parametrize(("error", "left_seconds"), [(AWAY, 0.0), (BUSY, 3.0)], ids=["own", "asked for"])
def test_only_a_delay_that_nobody_asked_for_is_cut_short(clock, error, left_seconds):
    backoff = Backoff(clock, 0.2, 7.0, rand=lambda: 0.0)
    backoff.next(error)
    backoff.cut_short()
    assert backoff.left_seconds == left_seconds


async def test_what_is_left_of_it_passes_with_the_time(clock):
    backoff = Backoff(clock, 4.0, 7.0)
    backoff.next(AWAY)
    await clock.advance(3)
    assert backoff.left_seconds == pytest.approx(1.0)
    await clock.advance(3)
    assert backoff.left_seconds == 0
