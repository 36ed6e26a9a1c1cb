from datetime import UTC, datetime, timedelta

import pytest

from agent.core.times import EARLIEST, LATEST, exact_time, parse_time


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.678901Z", datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
        ("2026-01-02T03:04:05.6789012345Z", datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
        ("2026-01-02T03:04:05,5+05:30", datetime(2026, 1, 1, 21, 34, 5, 500000, UTC)),
        ("1970-01-01T00:00:00+23:59", EARLIEST),
        ("9999-12-31T23:59:59Z", LATEST),
        ("9999-12-31T23:59:59-23:59", LATEST),
        ("0001-01-01T00:00:00+23:59", EARLIEST),
        ("0000-02-29T00:00:00Z", EARLIEST),
        ("9996-02-29T00:00:00Z", LATEST),
    ],
)
def test_a_time_is_read_in_utc_and_one_too_far_away_becomes_the_end(text, moment):
    assert parse_time(text) == moment
    assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05z",
        "2026-01-02t03:04:05Z",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05Z\n",
        " 2026-01-02T03:04:05Z",
        "2026-02-30T03:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:04:60Z",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+10:60",
        "10000-01-02T03:04:05Z",
        "٢٠٢٦-01-02T03:04:05Z",
        "20260102T030405Z",
        f"2026-01-02T03:04:05.{'1' * 5000}Z",
    ],
)
def test_what_a_kubelet_could_not_read_is_no_time(text):
    with pytest.raises(ValueError, match=r"not a time|out of range|must be in"):
        parse_time(text)


@pytest.mark.parametrize("value", [None, 5, [], {}, b"2026-01-02T03:04:05Z"])
def test_what_is_no_text_is_no_time(value):
    with pytest.raises(ValueError, match="not a time"):
        parse_time(value)


def test_a_year_of_time_more_or_less_stays_within_the_calendar():
    for end in (EARLIEST, LATEST):
        assert end - timedelta(days=36500) < end < end + timedelta(days=36500)


def test_an_exact_time_is_not_moved():
    assert exact_time("9999-12-31T23:59:59Z") == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    with pytest.raises(OverflowError):
        exact_time("9999-12-31T23:59:59-23:59")
