from itertools import pairwise

import pytest

from agent.core.metrics import Registry
from agent.machinery.isolation import UnexpectedErrors
from agent.machinery.runner import Runner
from agent.machinery.workqueue import WorkQueue
from agent.ports import NodeDeleted
from tests.fakes import FakeController, running

pytestmark = pytest.mark.anyio


class Raising(FakeController):
    async def sync(self):
        await super().sync()
        raise ValueError("nobody expects this")


class Hanging(FakeController):
    async def sync(self):
        await super().sync()
        await self._clock.sleep(3600)


@pytest.fixture
def errors(clock):
    return UnexpectedErrors(clock, Registry())


async def test_sync_says_when_it_is_called_next(clock, errors):
    queue, controller = WorkQueue(clock), FakeController(clock, errors)
    queue.add(controller)
    async with running(Runner("test", queue)):
        await clock.advance(35)
    assert controller.called_at == [0, 10, 20, 30]


async def test_a_wake_up_begins_a_new_period(clock, errors):
    queue, controller = WorkQueue(clock), FakeController(clock, errors)
    queue.add(controller)
    async with running(Runner("test", queue)):
        await clock.advance(4)
        queue.add(controller)
        await clock.advance(20)
    assert controller.called_at == [0, 4, 14, 24]


async def test_one_that_raises_each_time_is_left_alone_ever_longer_and_delays_none_of_999_others(clock, errors):
    queue, raising = WorkQueue(clock), Raising(clock, errors, "raising")
    others = [FakeController(clock, errors) for _ in range(999)]
    for controller in (raising, *others):
        queue.add(controller)
    async with running(Runner("test", queue, workers=4)):
        await clock.advance(60)
    assert all(controller.called_at == [0, 10, 20, 30, 40, 50, 60] for controller in others)
    assert [later - earlier for earlier, later in pairwise(raising.called_at)] == [1, 2, 4, 8, 16]


async def test_one_that_hangs_holds_up_one_worker(clock, errors):
    queue, controller = WorkQueue(clock), FakeController(clock, errors)
    queue.add(Hanging(clock, errors))
    queue.add(controller)
    async with running(Runner("test", queue, workers=2)):
        await clock.advance(20)
    assert controller.called_at == [0, 10, 20]


async def test_an_error_that_is_meant_to_end_the_process_does(clock, errors):
    class Ending(FakeController):
        async def sync(self):
            raise NodeDeleted("n1")

    queue = WorkQueue(clock)
    queue.add(Ending(clock, errors))
    with pytest.RaisesGroup(NodeDeleted):
        await Runner("test", queue).run()
