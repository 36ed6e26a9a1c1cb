import threading

import pytest

from agent.adapters.host.deadline_reader import DeadlineReader
from agent.adapters.host.sensor_metrics import SensorMetrics
from tests.fakes import settle, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def metrics():
    return SensorMetrics()


def told(metrics):
    return {
        (family.name.removeprefix("fake_kubelet_sensor_"), *sample.labels.values()): sample.value
        for family in metrics.families()
        for sample in family.samples
        if sample.suffix in {"", "_count"}
    }


async def settled(probe):
    await until(lambda: not probe.hangs)
    await settle()  # it is counted a turn later


async def test_each_reading_is_counted_and_a_failed_one_as_failed(metrics):
    def broken():
        raise ValueError("nonsense")

    probe = DeadlineReader({"good": lambda: {"a": 1}, "bad": broken}, metrics=metrics)
    for _ in range(3):
        await probe.read()
        await settled(probe)
    assert told(metrics) == {
        ("duration_seconds", "good"): 3,
        ("duration_seconds", "bad"): 3,
        ("errors_total", "bad", "failed"): 3,
        ("hanging", "good"): 0,
        ("hanging", "bad"): 0,
    }


async def test_a_reading_that_hangs_is_seen_by_its_name_until_it_comes_back(metrics, caplog):
    free = threading.Event()
    probe = DeadlineReader(
        {"quick": dict, "dead disk": lambda: {"a": free.wait(60)}}, deadline_seconds=0.5, metrics=metrics
    )
    await probe.read()
    await probe.read()  # not begun again
    assert told(metrics) == {("errors_total", "dead disk", "timeout"): 1, ("hanging", "dead disk"): 1}
    assert [record.args["sensor"] for record in caplog.records] == ["dead disk"]
    free.set()
    await settled(probe)
    assert told(metrics)["hanging", "dead disk"] == 0
    assert told(metrics)["duration_seconds", "dead disk"] == 1


async def test_a_first_reading_has_more_time_since_there_is_no_last_value_to_keep(caplog):
    slow, waits = threading.Event(), iter((0.2, 60))
    probe = DeadlineReader(
        {"slow": lambda: {"a": slow.wait(next(waits))}}, deadline_seconds=0.01, first_deadline_seconds=60
    )
    assert await probe.read() == {"a": False}
    assert not caplog.records
    assert await probe.read() == {"a": False}
    assert [record.msg for record in caplog.records] == ["Host does not answer, keeping its last values"]
    slow.set()
    await settled(probe)


async def test_an_error_that_no_reading_is_known_for_leaves_the_others_alone(metrics, caplog):
    class PsutilError(Exception):
        pass

    def broken():
        raise PsutilError("nonsense")

    probe = DeadlineReader({"bad": broken, "good": lambda: {"a": 1}}, metrics=metrics)
    assert await probe.read() == {"a": 1}
    await settled(probe)
    assert told(metrics)["errors_total", "bad", "failed"] == 1
    assert caplog.records[0].exc_info
