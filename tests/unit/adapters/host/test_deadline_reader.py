import threading

import pytest

from agent.adapters.host.deadline_reader import DeadlineReader, SensorMetrics
from tests.fakes import settle, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def metrics():
    return SensorMetrics()


def values(metrics):
    return {
        (family.name.removeprefix("fake_kubelet_sensor_"), *sample.labels.values()): sample.value
        for family in metrics.families()
        for sample in family.samples
        if sample.suffix in {"", "_count"}
    }


async def settled(reader):
    await until(lambda: not reader.hangs)
    await settle()  # it is counted a turn later


async def test_each_reading_is_counted_and_a_failed_one_as_failed(metrics):
    def broken(_):
        raise ValueError("nonsense")

    reader = DeadlineReader({}, {"good": lambda _: {"a": 1}, "bad": broken}, metrics=metrics)
    for _ in range(3):
        await reader.read()
        await settled(reader)
    assert values(metrics) == {
        ("duration_seconds", "good"): 3,
        ("duration_seconds", "bad"): 3,
        ("errors_total", "bad", "failed"): 3,
        ("hanging", "good"): 0,
        ("hanging", "bad"): 0,
    }


async def test_a_reading_that_hangs_is_seen_by_its_name_until_it_comes_back(metrics, caplog):
    free = threading.Event()
    reader = DeadlineReader(
        {}, {"quick": dict, "dead disk": lambda _: {"a": free.wait(60)}}, deadline_seconds=0.5, metrics=metrics
    )
    await reader.read()
    await reader.read()  # not begun again
    assert values(metrics) == {("errors_total", "dead disk", "timeout"): 1, ("hanging", "dead disk"): 1}
    assert [record.args["sensor"] for record in caplog.records] == ["dead disk"]
    free.set()
    await settled(reader)
    assert values(metrics)["hanging", "dead disk"] == 0
    assert values(metrics)["duration_seconds", "dead disk"] == 1


async def test_a_first_reading_has_more_time_since_there_is_no_last_value_to_keep(caplog):
    slow, waits = threading.Event(), iter((0.2, 60))
    reader = DeadlineReader(
        {}, {"slow": lambda _: {"a": slow.wait(next(waits))}}, deadline_seconds=0.01, first_deadline_seconds=60
    )
    assert await reader.read() == {"a": False}
    assert not caplog.records
    assert await reader.read() == {"a": False}
    assert [record.msg for record in caplog.records] == ["Host does not answer, keeping its last values"]
    slow.set()
    await settled(reader)


async def test_an_error_that_no_reading_is_known_for_leaves_the_others_alone(metrics, caplog):
    class PsutilError(Exception):
        pass

    def broken(_):
        raise PsutilError("nonsense")

    reader = DeadlineReader({}, {"bad": broken, "good": lambda _: {"a": 1}}, metrics=metrics)
    assert await reader.read() == {"a": 1}
    await settled(reader)
    assert values(metrics)["errors_total", "bad", "failed"] == 1
    assert caplog.records[0].exc_info
