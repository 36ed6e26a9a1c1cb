from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.errors import ConfigError
from agent.core.model import Filesystem
from agent.core.pressure import (
    DEFAULT_HARD,
    NO_PRESSURE,
    Observation,
    Threshold,
    ThresholdValue,
    next_pressure,
    parse_thresholds,
    share,
    signal_observations,
)
from tests.fakes import GIB, host_snapshot


def under(thresholds, at=0.0, before=NO_PRESSURE, reclaim=None, graces=None, **host):
    return next_pressure(
        before,
        parse_thresholds(thresholds, minimum_reclaim=reclaim, grace_periods=graces),
        signal_observations(host_snapshot(**host)),
        now_seconds=at,
        transition_seconds=300.0,
    )


@pytest.mark.parametrize("thresholds", [DEFAULT_HARD, {"memory.available": "100Mi"}], ids=["the default", "given"])
@pytest.mark.parametrize(
    ("available", "conditions"),
    [(100 * 2**20 - 1, {"MemoryPressure"}), (100 * 2**20, set())],
    ids=["one byte short", "exactly at the threshold"],
)
def test_memory_is_short_below_its_threshold(thresholds, available, conditions):
    assert under(thresholds, memory_available_bytes=available).conditions == conditions


@pytest.mark.parametrize(
    ("signal", "fs"),
    [
        ("nodefs.available", {"available_bytes": 9 * GIB}),
        ("imagefs.available", {"available_bytes": 9 * GIB}),
        ("nodefs.inodesFree", {"inodes_free": 99}),
    ],
)
def test_each_filesystem_signal_drives_disk_pressure(signal, fs):
    figures = {"capacity_bytes": 100 * GIB, "available_bytes": 60 * GIB, "inodes": 1000, "inodes_free": 900}
    assert under({signal: "10%"}, nodefs=Filesystem(**(figures | fs))).conditions == {"DiskPressure"}
    assert under({signal: "10%"}).conditions == set()


def test_pids_drive_pid_pressure():
    assert under({"pid.available": "1000"}, pids_used=32000).conditions == {"PIDPressure"}


def test_pressure_is_told_until_the_transition_period_has_passed():
    seen = under({"memory.available": "100Mi"}, memory_available_bytes=0, at=1000)
    assert under({"memory.available": "100Mi"}, before=seen, at=1299.9).conditions == {"MemoryPressure"}
    assert under({"memory.available": "100Mi"}, before=seen, at=1300).conditions == set()


def test_what_was_short_must_recover_by_the_minimum_reclaim():
    hard, reclaim = {"memory.available": "1Gi"}, {"memory.available": "500Mi"}
    short = under(hard, reclaim=reclaim, memory_available_bytes=0, at=0)
    better = under(hard, reclaim=reclaim, before=short, memory_available_bytes=GIB + 400 * 2**20, at=400)
    assert better.conditions == {"MemoryPressure"}
    well = under(hard, reclaim=reclaim, before=better, memory_available_bytes=GIB + 500 * 2**20, at=800)
    assert well.conditions == set()
    assert under(hard, reclaim=reclaim, memory_available_bytes=GIB + 400 * 2**20).conditions == set()


@pytest.mark.parametrize(
    ("short_until", "conditions"),
    [(3599.0, set()), (3600.0, {"MemoryPressure"})],
    ids=["within its grace period", "its grace period over"],
)
def test_a_soft_threshold_must_recover_by_the_minimum_reclaim_once_its_grace_period_is_over(short_until, conditions):
    soft = {
        "thresholds": {"memory.available": "1Gi"},
        "graces": {"memory.available": "1h"},
        "reclaim": {"memory.available": "500Mi"},
    }
    short = under(**soft, memory_available_bytes=0, at=0)
    still_short = under(**soft, before=short, memory_available_bytes=0, at=short_until)
    assert bool(still_short.due) is bool(conditions)
    better = under(**soft, before=still_short, memory_available_bytes=GIB, at=short_until + 300)
    assert better.conditions == conditions


def test_a_soft_threshold_needs_a_grace_period_and_raises_the_condition_at_once():
    soft = parse_thresholds({"memory.available": "1Gi"}, grace_periods={"memory.available": "1m30s"})
    assert soft == (Threshold("memory.available", ThresholdValue(GIB), grace_seconds=90.0),)
    low = signal_observations(host_snapshot(memory_available_bytes=0))
    assert next_pressure(NO_PRESSURE, soft, low, now_seconds=0, transition_seconds=300).conditions == {"MemoryPressure"}
    with pytest.raises(
        ConfigError, match=r"grace period must be specified for the soft eviction threshold memory.avail"
    ):
        parse_thresholds({"memory.available": "1Gi"}, grace_periods={})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"minimum_reclaim": {"memory.available": "-1"}},
            "negative eviction minimum reclaim specified for memory.available",
        ),
        ({"minimum_reclaim": {"memory.available": "0%"}}, "minimum reclaim memory.available must be positive: 0%"),
        ({"minimum_reclaim": {"x": "1"}}, "unsupported eviction signal x"),
        ({"grace_periods": {"memory.available": "-1s"}}, "invalid eviction grace period specified: -1s"),
        ({"grace_periods": {"memory.available": "1"}}, "missing unit in duration"),
    ],
)
def test_a_wrong_reclaim_or_grace_period_is_named(given, message):
    with pytest.raises(ConfigError, match=message):
        parse_thresholds({}, **given)


def test_a_signal_that_cannot_be_read_is_no_pressure():
    assert under({"nodefs.available": "10%"}, nodefs=None).conditions == set()


def test_10_percent_is_float32():
    assert share(41152812 * 1024, 10) == 4214048011


def rounded(exact, bits):
    """The nearest number of so many binary digits, ties to even: IEEE 754 by hand."""
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length() - bits
    unit = Fraction(2) ** exponent
    unit = unit if exact < unit * 2**bits else unit * 2
    return round(exact / unit) * unit


@given(st.integers(1, 2**52), st.floats(2**-10, 100, width=32))
def test_a_share_is_what_float32_and_float64_make_of_it(capacity, percent):
    fraction = rounded(Fraction(percent) / 100, 24)
    assert share(capacity, percent) == int(rounded(capacity * fraction, 53))


AMOUNTS = st.builds(ThresholdValue, st.integers(0, 2000)) | st.builds(
    ThresholdValue, st.none(), st.floats(0, 100, width=32)
)


@given(AMOUNTS, AMOUNTS, st.integers(0, 2000), st.integers(0, 2000), st.booleans())
def test_the_more_is_left_the_less_is_a_threshold_met(value, reclaim, less, more, was_due):
    threshold, capacity = Threshold("memory.available", value, reclaim), 2000
    less, more = sorted((less, more))
    met = [threshold.is_met(Observation(left, capacity), was_due=was_due) for left in (less, more)]
    assert met[0] >= met[1]
    assert threshold.is_met(Observation(less, capacity), was_due=True) >= met[0]


LOOKS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 200)), max_size=30)  # seconds later, so much is left


@given(LOOKS, st.integers(0, 50), st.integers(0, 100), st.integers(0, 100))
def test_pressure_ends_after_grace_reclaim_and_transition_however_it_came(looks, reclaim, grace, transition):
    threshold = Threshold("memory.available", ThresholdValue(100), ThresholdValue(reclaim), float(grace))
    felt, now, since, last = NO_PRESSURE, 0.0, None, None
    for later, left in looks:
        was_due, now = since is not None and now - since >= grace, now + later
        short = left < 100 + (reclaim if was_due else 0)
        since = (now if since is None else since) if short else None
        last = now if short else last
        seen = {"memory.available": Observation(left, 1000)}
        felt = next_pressure(felt, (threshold,), seen, now_seconds=now, transition_seconds=float(transition))
        assert set(felt.met) == ({threshold} if short else set())
        assert bool(felt.conditions) == (short or (last is not None and now - last < transition))


@pytest.mark.parametrize("value", ["0%", "100%"])
def test_0_and_100_percent_switch_a_signal_off(value):
    assert parse_thresholds({"nodefs.available": value}) == ()


def test_containerfs_cannot_be_set_apart_from_nodefs():
    assert parse_thresholds({"containerfs.available": "99%"}) == ()


def test_thresholds_are_amounts_or_percentages():
    assert parse_thresholds({"memory.available": "1Gi", "nodefs.available": "2.5%"}) == (
        Threshold("memory.available", ThresholdValue(GIB)),
        Threshold("nodefs.available", ThresholdValue(percent=2.5)),
    )


@pytest.mark.parametrize(
    ("text", "percent"),
    [("+.5%", 0.5), ("5.%", 5.0), ("2.5e1%", 25.0), ("1_0%", 10.0), ("25%%", 25.0), ("100.000001%", 100.0)],
)
def test_a_percentage_is_written_as_go_reads_it(text, percent):
    assert parse_thresholds({"memory.available": text}) == (
        Threshold("memory.available", ThresholdValue(percent=percent)),
    )


@pytest.mark.parametrize(
    ("signal", "value", "message"),
    [
        ("disk.free", "1", "unsupported eviction signal disk.free"),
        ("memory.available", "-5%", "must be >= 0%: -5%"),
        ("memory.available", "101%", "must be <= 100%: 101%"),
        ("memory.available", "0", "must be positive: 0"),
        ("memory.available", "lots", "eviction threshold memory.available: lots"),
        ("memory.available", "x%", 'parsing "x": invalid syntax'),
        ("memory.available", "nan%", 'parsing "nan": invalid syntax'),
        ("memory.available", "inf%", 'parsing "inf": invalid syntax'),
        ("memory.available", "1__0%", 'parsing "1__0": invalid syntax'),
        ("memory.available", "1_%", 'parsing "1_": invalid syntax'),
        ("memory.available", " 10 %", 'parsing " 10 ": invalid syntax'),
        ("memory.available", "٣%", "invalid syntax"),
        ("memory.available", "1e40%", 'parsing "1e40": value out of range'),
    ],
)
def test_a_wrong_threshold_is_named(signal, value, message):
    with pytest.raises(ConfigError, match=message):
        parse_thresholds({signal: value})
