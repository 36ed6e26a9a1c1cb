from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.times import (
    EARLIEST,
    LATEST,
    exact_time,
    format_nanos,
    format_seconds,
    micro_timestamp,
    parse_nanos,
    parse_seconds,
    parse_time,
    timestamp,
)


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


MOMENT = datetime(2026, 1, 2, 5, 4, 5, 600, timezone(timedelta(hours=2)))


def test_times_are_written_in_utc():
    assert timestamp(MOMENT) == "2026-01-02T03:04:05Z"
    assert micro_timestamp(MOMENT) == "2026-01-02T03:04:05.000600Z"


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        ("10s", 10, "10s"),
        ("1m30s", 90, "1m30s"),
        ("1.5h", 5400, "1h30m0s"),
        ("500ms", 0.5, "500ms"),
        ("0", 0, "0s"),
        ("-1s", -1, "-1s"),
        ("1h5m0.25s", 3900.25, "1h5m0.25s"),
        ("1500us", 0.0015, "1.5ms"),
    ],
)
def test_a_duration_is_read_and_printed_as_go_does(text, seconds, printed):
    assert parse_seconds(text) == seconds
    assert format_seconds(seconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", 'time: missing unit in duration "5"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("", 'time: invalid duration ""'),
        ("soon", 'time: invalid duration "soon"'),
        ("1s5", 'time: missing unit in duration "1s5"'),
        ("1..2s", 'time: missing unit in duration "1..2s"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        (".s", 'time: invalid duration ".s"'),
        ("٣s", 'time: invalid duration "٣s"'),
        ("1s" * 50_000, "time: invalid duration of too many characters"),
        ("9" * 5000 + "s", "time: invalid duration of too many characters"),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text, message):
    with pytest.raises(ValueError, match="time: ") as refused:
        parse_seconds(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("8760h0m0.000000001s", 31_536_000_000_000_001),
        ("9007199254740993ns", 2**53 + 1),
        ("9223372036s854ms775us807ns", 2**63 - 1),
        ("-9223372036854775.808us", -(2**63)),
        ("0.3333333333333333333h", 20 * 60 * 10**9),
        ("0.100000000000000000000h", 6 * 60 * 10**9),
        ("0.9223372036854775807h", 3_320_413_933_267),
    ],
)
def test_nanoseconds_are_exact_as_far_as_gos_are(text, nanos):
    assert parse_nanos(text) == nanos
    assert parse_nanos(format_nanos(nanos)) == nanos


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_printed_reads_the_same(millis):
    assert parse_seconds(format_seconds(millis / 1000)) == pytest.approx(millis / 1000)
