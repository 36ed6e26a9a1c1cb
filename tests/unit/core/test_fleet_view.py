"""What a fleet shows of itself."""

from agent.core.fleet_view import FleetView, age_histogram, percentile, plain_line


def view(**fields):
    return FleetView(**{"name": "test", "seconds": 12.0, "states": {"Ready": 3, "NotReady": 1}, **fields})


def test_a_line_has_all_that_a_person_looks_for():
    line = plain_line(
        view(lease_ages=[1.0, 2.0, 12.4], missed=2, latencies=[0.01] * 99 + [0.2], pods=7, rss_bytes=80 * 2**20)
    )
    assert line.split("  ")[-1] == (
        "3 Ready, 1 NotReady; 0 renewals/s, oldest lease 12s, 2 missed; API p50/p99 10/200 ms; 7 pods; 80 MiB"
    )


def test_renewals_per_second_are_those_of_the_last_five_seconds():
    assert view(lease_ages=[0.5, 4.9, 5.1, 9.0]).renewals_per_second == 0.4


def test_ages_are_counted_below_their_limits():
    counts = dict(age_histogram([0.0, 4.9, 5.0, 12.0, 40.0, 100.0]))
    assert counts == {"<5s": 2, "<10s": 1, "<15s": 1, "<20s": 0, "<30s": 0, "<40s": 0, ">=40s": 2}


def test_a_percentile_is_one_of_the_values():
    assert [percentile([3.0, 1.0, 2.0], percent) for percent in (0, 50, 100)] == [1.0, 2.0, 3.0]
    assert percentile([], 50) == 0.0
