"""Amounts over time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.pods.curve import Curve, Point

MINUTE = 60_000
SINE = Curve.sine(100, 400, 60 * MINUTE)
RAMP = Curve.ramp(0, 500, 10 * MINUTE)
STEPS = Curve.steps([Point(0, 1), Point(5000, 4), Point(9000, 2)])
NOISE = Curve.noise(200_000, 0.1, "seed")


@pytest.mark.parametrize(
    ("curve", "at_ms", "nano"),
    [
        (Curve.constant(7), 10**9, 7),
        (RAMP, 0, 0),
        (RAMP, 5 * MINUTE, 250),
        (RAMP, 11 * MINUTE, 500),
        (RAMP, -1, 0),
        (SINE, 0, 100),
        (SINE, 15 * MINUTE, 250),
        (SINE, 30 * MINUTE, 400),
        (SINE, 75 * MINUTE, 250),
        (STEPS, 4999, 1),
        (STEPS, 5000, 4),
        (STEPS, 9000, 2),
        (STEPS, 10**9, 2),
    ],
)
def test_the_amount_at_a_moment(curve: Curve, at_ms: int, nano: int) -> None:
    assert curve.at(at_ms) == nano


def test_noise_stays_within_its_spread_and_is_the_same_for_the_same_seed() -> None:
    values = {NOISE.at(ms) for ms in range(0, 10 * MINUTE, 1000)}
    assert len(values) > 30
    assert all(180_000 <= value <= 220_000 for value in values)
    assert Curve.noise(200_000, 0.1, "seed") == NOISE
    assert Curve.noise(200_000, 0.1, "other") != NOISE


def test_the_sum_of_a_wave_is_its_mean_over_time() -> None:
    assert SINE.sum_until(60 * MINUTE) == pytest.approx(250 * 3600, rel=0.001)


def test_a_limit_cuts_a_curve_off() -> None:
    cut = RAMP.at_most(250)
    assert [cut.at(minute * MINUTE) for minute in (0, 2, 5, 8, 20)] == [0, 100, 250, 250, 250]
    assert RAMP.at_most(500) is RAMP


@pytest.mark.parametrize(
    ("curve", "limit", "at_ms"),
    [
        (RAMP, 250, 5 * MINUTE + 1),
        (RAMP, 500, None),
        (STEPS, 0, 0),
        (STEPS, 3, 5000),
        (STEPS, 4, None),
        (Curve.constant(9), 8, 0),
    ],
)
def test_the_first_moment_above_a_limit(curve: Curve, limit: int, at_ms: int | None) -> None:
    assert curve.first_above(limit) == at_ms


_POINTS = st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**12)), min_size=1, max_size=6)


@given(_POINTS, st.integers(0, 10**12), st.booleans(), st.lists(st.integers(0, 10**8), min_size=2, max_size=20))
def test_a_sum_over_time_never_falls(steps: list[tuple[int, int]], limit: int, again: bool, times: list[int]) -> None:
    at, points = 0, [Point(0, 5)]
    for wait, nano in steps:
        at += wait
        points.append(Point(at, nano))
    curve = Curve(tuple(points), again).at_most(limit)
    sums = [curve.sum_until(ms) for ms in sorted(times)]
    assert sums == sorted(sums)
    assert all(curve.at(ms) <= limit for ms in times)
    assert all(
        later - earlier <= limit * (end - begin) // 1000 + 1
        for earlier, later, begin, end in zip(sums, sums[1:], sorted(times), sorted(times)[1:], strict=False)
    )
