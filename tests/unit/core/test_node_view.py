import pytest

from agent.core.node_view import condition_rows, format_bytes, resource_rows
from agent.core.pressure import parse_thresholds, signal_observations
from tests.fakes import GIB, host_snapshot
from tests.settings import Eviction, NodeConfig

HARD = parse_thresholds({"memory.available": "1Gi", "nodefs.available": "10%"})
CONFIG = NodeConfig(node_name="n1", eviction=Eviction(hard=HARD))


def shown(kind, status, **host):
    told = {"type": kind, "status": status, "reason": "R", "message": "M"}
    return condition_rows(CONFIG, {"conditions": [told]}, signal_observations(host_snapshot(**host)))[0]


def test_a_condition_shows_what_is_left_against_what_is_wanted():
    (signal,) = shown("MemoryPressure", "False").signals
    assert signal == ("memory.available", "6.0 GiB of 8.0 GiB", 0.75, "1.0 GiB", 0.125, False)


def test_what_is_short_is_marked():
    condition = shown("MemoryPressure", "True", memory_available_bytes=GIB // 2)
    assert condition.is_bad
    assert condition.signals[0].is_met


def test_a_signal_without_a_threshold_is_shown_too():
    signals = {signal.signal: signal for signal in shown("DiskPressure", "False").signals}
    assert signals["nodefs.available"].threshold == "10.0 GiB"
    assert signals["nodefs.inodesFree"].threshold == ""
    assert signals["nodefs.inodesFree"].available == "900 of 1,000"


@pytest.mark.parametrize(
    ("kind", "status", "bad"),
    [
        ("Ready", "True", False),
        ("Ready", "Unknown", True),
        ("PIDPressure", "True", True),
        ("NetworkUnavailable", "False", False),
    ],
)
def test_which_status_is_bad_depends_on_the_condition(kind, status, bad):
    assert shown(kind, status).is_bad is bad


def test_shares_are_allocatable_of_capacity():
    capacity = {"cpu": "4", "memory": "8388608Ki", "pods": "110", "hugepages-2Mi": "0", "nonsense": "x"}
    allocatable = {"cpu": "3500m", "memory": "4194304Ki", "pods": "110", "hugepages-2Mi": "0"}
    assert resource_rows({"capacity": capacity, "allocatable": allocatable}) == [
        ("cpu", "4", "3.5", 0.875),
        ("memory", "8.0 GiB", "4.0 GiB", 0.5),
        ("pods", "110", "110", 1.0),
    ]


def test_a_node_that_is_not_there_has_nothing_to_show():
    assert resource_rows({}) == []
    assert condition_rows(CONFIG, {}, {}) == []


@pytest.mark.parametrize(
    ("size", "said"), [(0, "0 B"), (1536, "1.5 KiB"), (200 * GIB, "200 GiB"), (5000 * GIB, "4.9 TiB")]
)
def test_sizes_are_said_as_people_read_them(size, said):
    assert format_bytes(size) == said
