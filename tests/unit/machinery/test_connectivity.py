import asyncio

import pytest

from agent.machinery.connectivity import Connectivity

pytestmark = pytest.mark.anyio


@pytest.fixture
def connectivity(clock):
    return Connectivity(clock)


async def test_who_asks_again_and_again_is_woken_once(connectivity):
    woken = []
    for _ in range(1000):
        connectivity.on_recovered(woken.append)
    connectivity.notify_recovered()
    connectivity.notify_recovered()
    assert woken == [0.0]


async def test_50_are_woken_at_once_and_the_others_at_200_a_second(connectivity):
    delays = {}
    for number in range(450):
        connectivity.on_recovered(lambda delay_seconds, number=number: delays.update({number: delay_seconds}))
    connectivity.notify_recovered()
    assert [number for number, delay_seconds in delays.items() if not delay_seconds] == list(range(50))
    assert delays[249] == pytest.approx(1.0)
    assert delays[449] == pytest.approx(2.0)


async def test_a_wait_ends_with_the_outage(connectivity, clock):
    wait = asyncio.ensure_future(connectivity.wait_or_recovered(10))
    await clock.advance(1)
    assert not wait.done()
    connectivity.notify_recovered()
    await clock.advance(0)
    assert wait.done()
