import pytest

from agent.core.errors import ConfigError
from agent.core.eviction import NO_PRESSURE, Threshold, observe, parse_thresholds, pressure, share
from agent.core.model import Filesystem
from tests.fakes import GIB, host_snapshot


def under(thresholds, at=0.0, before=NO_PRESSURE, **host):
    return pressure(
        before,
        parse_thresholds(thresholds),
        observe(host_snapshot(**host)),
        now_seconds=at,
        transition_seconds=300.0,
    )


@pytest.mark.parametrize(
    ("available", "conditions"),
    [(100 * 2**20 - 1, {"MemoryPressure"}), (100 * 2**20, set())],
    ids=["one byte short", "exactly at the threshold"],
)
def test_memory_is_short_below_its_threshold(available, conditions):
    assert under({"memory.available": "100Mi"}, memory_available_bytes=available).conditions == conditions


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


def test_a_signal_that_cannot_be_read_is_no_pressure():
    assert under({"nodefs.available": "10%"}, nodefs=None).conditions == set()


def test_10_percent_is_float32():
    assert share(41152812 * 1024, 10) == 4214048011


@pytest.mark.parametrize("value", ["0%", "100%"])
def test_0_and_100_percent_switch_a_signal_off(value):
    assert parse_thresholds({"nodefs.available": value}) == ()


def test_thresholds_are_amounts_or_percentages():
    assert parse_thresholds({"memory.available": "1Gi", "nodefs.available": "2.5%"}) == (
        Threshold("memory.available", amount=GIB),
        Threshold("nodefs.available", percent=2.5),
    )


@pytest.mark.parametrize(
    ("signal", "value", "message"),
    [
        ("disk.free", "1", "unsupported eviction signal disk.free"),
        ("memory.available", "-5%", "must be >= 0%: -5%"),
        ("memory.available", "101%", "must be <= 100%: 101%"),
        ("memory.available", "0", "must be positive: 0"),
        ("memory.available", "lots", "eviction threshold memory.available: lots"),
        ("memory.available", "x%", "x% is not a percentage"),
    ],
)
def test_a_wrong_threshold_is_named(signal, value, message):
    with pytest.raises(ConfigError, match=message):
        parse_thresholds({signal: value})
