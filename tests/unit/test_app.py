import asyncio

import pytest

from agent.app import supervise

pytestmark = pytest.mark.anyio


class Forever:
    def __init__(self):
        self.ended = False

    async def run(self):
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


class Short:
    async def run(self):
        return


class Broken:
    async def run(self):
        raise RuntimeError("a bug")


async def test_loops_run_until_stop_and_are_all_ended_then():
    stop, loops = asyncio.Event(), [Forever(), Forever()]
    supervisor = asyncio.create_task(supervise(loops, stop))
    await asyncio.sleep(0)
    stop.set()
    await supervisor
    assert all(loop.ended for loop in loops)


async def test_a_loop_whose_work_is_done_ends_nothing_else():
    stop, forever = asyncio.Event(), Forever()
    supervisor = asyncio.create_task(supervise([Short(), forever], stop))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not forever.ended
    stop.set()
    await supervisor


async def test_a_loop_that_fails_takes_the_others_with_it():
    forever = Forever()
    with pytest.raises(ExceptionGroup) as raised:
        await supervise([forever, Broken()], asyncio.Event())
    assert raised.group_contains(RuntimeError, match="a bug")
    assert forever.ended
