import asyncio

import pytest

from agent.machinery.workqueue import WorkQueue
from tests.fakes import settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def queue(clock):
    return WorkQueue(clock)


async def taken(queue):
    """What can be taken without waiting."""
    task = asyncio.create_task(queue.get())
    await settle()
    if task.done():
        return task.result()
    task.cancel()
    return None


async def test_names_come_when_they_are_due(queue, clock):
    queue.add_after("late", 5)
    queue.add("now")
    assert [await taken(queue), await taken(queue)] == ["now", None]
    await clock.advance(5)
    assert await taken(queue) == "late"


async def test_only_those_wait_that_are_due(queue, clock):
    queue.add_after("late", 5)
    queue.add("now")
    assert (queue.has_due(1), queue.has_due(2)) == (True, False)
    await clock.advance(5)
    assert (queue.has_due(2), queue.has_due(3)) == (True, False)
    queue.discard("late")
    assert not queue.has_due(2)


async def test_keys_that_are_late_are_told_from_those_that_are_due(queue, clock):
    queue.add("a")
    queue.add_after("b", 3)
    await clock.advance(4)
    assert (queue.has_due(1, late_seconds=2), queue.has_due(2, late_seconds=2)) == (True, False)
    await clock.advance(1)
    assert queue.has_due(2, late_seconds=2)


async def test_the_earliest_call_counts(queue, clock):
    queue.add_after("a", 5)
    queue.add_after("a", 1)
    queue.add_after("a", 9)
    await clock.advance(1)
    assert await taken(queue) == "a"
    queue.done("a")
    await clock.advance(20)
    assert await taken(queue) is None


async def test_a_name_is_in_one_hand_at_a_time_and_comes_again_if_it_was_called(queue):
    queue.add("a")
    assert await taken(queue) == "a"
    queue.add("a")
    assert await taken(queue) is None
    queue.done("a")
    assert await taken(queue) == "a"


async def test_a_waiting_hand_is_woken_by_an_earlier_call(queue, clock):
    queue.add_after("late", 50)
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("now")
    await settle()
    assert waiting.result() == "now"


async def test_a_forgotten_name_does_not_come(queue):
    queue.add("a")
    queue.discard("a")
    assert await taken(queue) is None


async def test_what_was_forgotten_takes_no_room(queue):
    for number in range(10_000):
        queue.add_after(str(number), 3600)
        queue.discard(str(number))
    assert len(queue._heap) < 1000
