"""An error that nobody expected: logged, counted and tried again, and it ends nothing else."""

import asyncio
import logging

import pytest

from agent.core.errors import ConfigError
from agent.core.metrics import Registry
from agent.machinery.health import HealthRegistry, NodeDetails
from agent.machinery.isolation import Pauses, UnexpectedErrors
from agent.ports import NodeDeleted, StartError
from tests.fakes import running, settle

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("error", [StartError("act"), NodeDeleted("gone"), ConfigError("wrong")])
async def test_what_a_person_must_fix_ends_the_loop(clock, metrics, health, error):
    async def run():
        raise error

    async def group():
        raise ExceptionGroup("several", [RuntimeError(), error])

    errors = UnexpectedErrors(clock, metrics)
    with pytest.raises(type(error)):
        await errors.isolated("x", run, health).run()
    with pytest.raises(ExceptionGroup):
        await errors.isolated("x", group, health).run()
    assert counted_of(metrics) == 0


@pytest.fixture
def metrics():
    return Registry()


def counted_of(metrics):
    (family,) = (family for family in metrics.families() if family.name == "fake_kubelet_unexpected_errors_total")
    return family.samples[0].value


@pytest.fixture
def health(clock, metrics):
    return HealthRegistry(clock, metrics, NodeDetails()).loop("x", deadline_seconds=10)


async def test_a_loop_that_is_cancelled_ends_even_if_it_fails_in_doing_so(clock, metrics, health):
    async def run():
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("a bug")

    task = asyncio.create_task(UnexpectedErrors(clock, metrics).isolated("x", run, health).run())
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_loop_that_ran_for_long_begins_with_a_short_pause_again(clock, metrics, health):
    began = []

    async def run():
        began.append(clock.elapsed)
        await clock.sleep(100 if len(began) == 5 else 0)
        raise RuntimeError("a bug")

    pauses = Pauses(1.0, 30.0)
    async with running(UnexpectedErrors(clock, metrics).isolated("x", run, health, pauses)):
        await clock.advance(130)
    assert began == [0, 1, 3, 7, 15, 116, 118, 122, 130]


async def test_a_flood_of_errors_is_counted_in_full_and_logged_in_part(clock, metrics, caplog):
    errors = UnexpectedErrors(clock, metrics)
    isolation = errors.isolation("x")
    for number in range(10_000):
        with isolation.attempt(str(number), thing=number):
            raise RuntimeError("a bug")
        clock.elapsed += 0.01
    assert counted_of(metrics) == 10_000
    lines = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert 20 <= len(lines) <= 50
    assert lines[0].args["thing"] == 0
    assert len([record for record in lines if record.exc_info]) == 1
