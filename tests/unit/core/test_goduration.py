import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.goduration import format_seconds, parse_seconds


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
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text, message):
    with pytest.raises(ValueError, match="time: ") as refused:
        parse_seconds(text)
    assert str(refused.value) == message


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_printed_reads_the_same(millis):
    assert parse_seconds(format_seconds(millis / 1000)) == pytest.approx(millis / 1000)
