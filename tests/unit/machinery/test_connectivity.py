import asyncio

import pytest

from agent.machinery.connectivity import Connectivity
from agent.ports import Unavailable, Untrusted

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


def lines(caplog):
    return [(record.levelname, record.msg, record.args) for record in caplog.records]


async def test_an_outage_is_logged_once_when_it_begins_and_once_when_it_ends(clock, caplog):
    caplog.set_level("INFO")
    missed = [3]
    connectivity = Connectivity(clock, lambda: missed[0])
    refused = Unavailable("connection refused")
    for _ in range(5):
        connectivity.unanswered(refused)
        await clock.advance(0.5)
    missed[0] = 5
    await clock.advance(20)
    connectivity.answered()
    connectivity.answered()
    assert lines(caplog) == [
        ("WARNING", "API server unreachable", {"err": refused}),
        ("INFO", "API server reachable again", {"unreachableFor": "22s", "missedLeaseRenewals": 2}),
    ]


async def test_a_request_that_fails_now_and_then_is_no_outage(connectivity, clock, caplog):
    for _ in range(5):
        connectivity.unanswered(Unavailable("EOF"))
        await clock.advance(0.9)
        connectivity.unanswered(Unavailable("EOF"))
        connectivity.answered()
    assert lines(caplog) == []


async def test_an_outage_began_when_the_first_request_without_an_answer_was_sent(connectivity, clock, caplog):
    caplog.set_level("INFO")
    connectivity.answered()
    await clock.advance(30)
    connectivity.unanswered(Unavailable("context deadline exceeded"), waited_seconds=10)
    await clock.advance(5)
    connectivity.answered()
    assert [line[1] for line in lines(caplog)] == ["API server unreachable", "API server reachable again"]
    assert lines(caplog)[1][2]["unreachableFor"] == "15s"


async def test_no_outage_began_before_the_last_answer(connectivity, clock, caplog):
    await clock.advance(30)
    connectivity.answered()
    connectivity.unanswered(Unavailable("context deadline exceeded"), waited_seconds=10)
    assert lines(caplog) == []


async def test_the_line_about_an_outage_has_a_hint_where_a_person_can_do_something(connectivity, clock, caplog):
    error = Untrusted("x509: certificate signed by unknown authority", hint="check certificate-authority")
    connectivity.unanswered(error, waited_seconds=2)
    assert lines(caplog) == []  # answered just now, when the process began
    await clock.advance(2)
    connectivity.unanswered(error)
    assert lines(caplog)[0][2] == {"err": error, "hint": "check certificate-authority"}
