import asyncio
import os
import signal

import pytest

from agent.core.errors import ConfigError
from agent.core.metrics import Registry
from agent.machinery.isolation import UnexpectedErrors
from agent.supervisor import reload_on_signal, supervise
from tests.fakes import EndlessLoop, FakeClock, settle

pytestmark = pytest.mark.anyio


class Short:
    async def run(self):
        return


class Broken:
    async def run(self):
        raise RuntimeError("a bug")


async def test_loops_run_until_stop_and_are_all_ended_then():
    stop, loops = asyncio.Event(), [EndlessLoop(), EndlessLoop()]
    supervisor = asyncio.create_task(supervise(loops, stop))
    await settle()
    stop.set()
    await supervisor
    assert all(loop.ended for loop in loops)


async def test_a_loop_whose_work_is_done_ends_nothing_else():
    stop, forever = asyncio.Event(), EndlessLoop()
    supervisor = asyncio.create_task(supervise([Short(), forever], stop))
    await settle()
    assert not forever.ended
    stop.set()
    await supervisor


async def test_a_loop_that_fails_takes_the_others_with_it():
    forever = EndlessLoop()
    with pytest.raises(ExceptionGroup) as raised:
        await supervise([forever, Broken()], asyncio.Event())
    assert raised.group_contains(RuntimeError, match="a bug")
    assert forever.ended


async def test_a_loop_that_is_isolated_takes_nobody_with_it():
    stop, forever, runs = asyncio.Event(), EndlessLoop(), []

    async def broken():
        runs.append(1)
        raise RuntimeError("a bug")

    clock = FakeClock()
    isolated = UnexpectedErrors(clock, Registry()).isolated("x", broken)
    supervisor = asyncio.create_task(supervise([isolated, forever], stop))
    await clock.advance(10)
    assert (len(runs), forever.ended) == (4, False)
    stop.set()
    await supervisor


async def test_draining_comes_after_the_tasks_and_before_the_lasting_ones_end():
    stop, forever, lasting, said = asyncio.Event(), EndlessLoop(), EndlessLoop(), []

    async def drain():
        said.append((forever.ended, lasting.ended))

    supervisor = asyncio.create_task(supervise([forever], stop, lasting=[lasting], drain=drain))
    await settle()
    stop.set()
    await supervisor
    assert said == [(True, False)]
    assert lasting.ended


async def test_a_node_that_goes_down_says_so_while_everything_runs_and_its_lease_ends_last():
    stop, status, lease, order = asyncio.Event(), EndlessLoop(), EndlessLoop(), []

    async def note():
        order.append((status.ended, lease.ended))

    work = supervise([status], stop, on_stop=note, lasting=[lease], drain=note)
    supervisor = asyncio.create_task(work)
    await settle()
    stop.set()
    await supervisor
    assert order == [(False, False), (True, False)]
    assert lease.ended


async def test_draining_that_hangs_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr("agent.supervisor.DRAIN_SECONDS", 0.01)
    stop = asyncio.Event()
    stop.set()
    async with asyncio.timeout(60):
        await supervise([EndlessLoop()], stop, drain=asyncio.Event().wait)


async def test_sighup_has_credentials_and_log_settings_read_again(caplog):
    reload, reread = asyncio.Event(), []
    reload_on_signal(reload, lambda: reread.append(1))
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(60):
            await reload.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert reread == [1]


async def test_log_settings_that_do_not_load_change_nothing(caplog):
    def broken():
        raise ConfigError("no such file")

    reload = asyncio.Event()
    reload_on_signal(reload, broken)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        async with asyncio.timeout(60):
            await reload.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert "Unable to reload log settings, keeping those in use" in [record.msg for record in caplog.records]
