"""How many may be under way at once."""

from agent.core.pacing import AdaptiveLimit


def succeed(limit, times):
    for _ in range(times):
        limit.succeeded()


def test_it_doubles_with_each_round_until_the_other_side_is_overrun():
    limit = AdaptiveLimit(4, most=1000)
    succeed(limit, 4)
    assert limit.limit == 8
    succeed(limit, 8)
    assert limit.limit == 16


def test_it_never_exceeds_the_most():
    limit = AdaptiveLimit(4, most=10)
    succeed(limit, 100)
    assert limit.limit == 10


def test_it_halves_when_the_other_side_is_overrun_and_grows_by_one_a_round_from_then_on():
    limit = AdaptiveLimit(64, most=1000)
    limit.overrun(100.0)
    assert limit.limit == 32
    succeed(limit, 33)  # the limit grows meanwhile, so that a round takes one more
    assert limit.limit == 33


def test_of_many_failures_at_once_the_first_counts():
    limit = AdaptiveLimit(64, most=1000)
    for _ in range(50):
        limit.overrun(100.0)
    assert (limit.limit, limit.decreases) == (32, 1)
    limit.overrun(101.0)
    assert (limit.limit, limit.decreases) == (16, 2)


def test_it_never_falls_below_the_least():
    limit = AdaptiveLimit(4, least=2, most=10)
    for second in range(10):
        limit.overrun(100.0 + second)
    assert limit.limit == 2
