import asyncio

import pytest

from agent.loops.agenda import Agenda
from tests.fakes import settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def agenda(clock):
    return Agenda(clock)


async def taken(agenda):
    """What can be taken without waiting."""
    task = asyncio.create_task(agenda.take())
    await settle()
    if task.done():
        return task.result()
    task.cancel()
    return None


async def test_names_come_when_they_are_due(agenda, clock):
    agenda.call("late", in_seconds=5)
    agenda.call("now")
    assert [await taken(agenda), await taken(agenda)] == ["now", None]
    await clock.advance(5)
    assert await taken(agenda) == "late"


async def test_only_those_wait_that_are_due(agenda, clock):
    agenda.call("late", in_seconds=5)
    agenda.call("now")
    assert agenda.waiting == 1
    await clock.advance(5)
    assert agenda.waiting == 2


async def test_the_earliest_call_counts(agenda, clock):
    agenda.call("a", in_seconds=5)
    agenda.call("a", in_seconds=1)
    agenda.call("a", in_seconds=9)
    await clock.advance(1)
    assert await taken(agenda) == "a"
    agenda.done("a")
    await clock.advance(20)
    assert await taken(agenda) is None


async def test_a_name_is_in_one_hand_at_a_time_and_comes_again_if_it_was_called(agenda):
    agenda.call("a")
    assert await taken(agenda) == "a"
    agenda.call("a")
    assert await taken(agenda) is None
    agenda.done("a")
    assert await taken(agenda) == "a"


async def test_a_waiting_hand_is_woken_by_an_earlier_call(agenda, clock):
    agenda.call("late", in_seconds=50)
    waiting = asyncio.create_task(agenda.take())
    await settle()
    agenda.call("now")
    await settle()
    assert waiting.result() == "now"


async def test_a_forgotten_name_does_not_come(agenda):
    agenda.call("a")
    agenda.forget("a")
    assert await taken(agenda) is None


async def test_what_was_forgotten_takes_no_room(agenda):
    for number in range(10_000):
        agenda.call(str(number), in_seconds=3600)
        agenda.forget(str(number))
    assert len(agenda._order) < 1000
