import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.goduration import format_nanos, format_seconds, parse_nanos, parse_seconds


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
