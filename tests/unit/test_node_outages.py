"""Outages on the whole node, in the time of a fake clock."""

import asyncio
from itertools import pairwise

import pytest

from agent.core.nodestatus import is_ready
from agent.ports import Forbidden, Unavailable
from tests.fakes import host_snapshot, running, succeed

pytestmark = pytest.mark.anyio


def away(_):
    return Unavailable("connection refused")


def renewals(leases):
    return leases.times("replace")


@pytest.mark.parametrize("seconds", [30, 300])
async def test_after_an_outage_the_lease_is_renewed_within_one_period_and_the_rhythm_is_back(
    make_node, clock, nodes, leases, seconds
):
    async with running(*make_node().tasks):
        await clock.advance(25)
        nodes.fail = leases.fail = away
        nodes.cut()
        await clock.advance(seconds)
        nodes.fail = leases.fail = succeed
        end, leases.calls[:] = clock.elapsed, []
        await clock.advance(40)
    assert renewals(leases)[0] - end <= 10.4
    assert [later - earlier for earlier, later in pairwise(renewals(leases))] == pytest.approx([10] * 3)


async def test_an_outage_of_20_seconds_costs_no_more_requests_than_a_kubelet_makes(make_node, clock, nodes, leases):
    async with running(*make_node(rand=lambda: 0.5).tasks):
        await clock.advance(25)
        nodes.fail = leases.fail = away
        nodes.cut()
        before = len(nodes.calls) + len(leases.calls)
        await clock.advance(20)
        # A kubelet was seen to send 101 to 156 in 25 s: docs/faults.md
        assert len(nodes.calls) + len(leases.calls) - before <= 101 * 20 / 25


async def test_who_gets_through_first_wakes_the_others(make_node, clock, nodes, leases):
    async with running(*make_node().tasks):
        await clock.advance(25)
        nodes.fail = leases.fail = away
        nodes.cut()
        await clock.advance(60)
        leases.calls.clear()
        nodes.fail = leases.fail = succeed
        await clock.advance(7)
        first_lease, first_watch = renewals(leases)[0], nodes.times("watch")[-1]
        assert first_watch == pytest.approx(first_lease)


@pytest.mark.parametrize("jump_seconds", [3600, -3600], ids=["forward", "back"])
async def test_a_clock_that_jumps_does_not_change_the_rhythm(make_node, clock, leases, jump_seconds):
    async with running(*make_node().tasks):
        await clock.advance(25)
        clock.skew_seconds = jump_seconds
        await clock.advance(20)
    assert renewals(leases) == [10, 20, 30, 40]


async def test_every_renewal_is_later_than_the_one_before_whatever_the_clock_does(make_node, clock, leases):
    async with running(*make_node().tasks):
        await clock.advance(25)
        clock.skew_seconds = -3600
        times = [leases.objects["n1"]["spec"]["renewTime"]]
        for _ in range(3):
            await clock.advance(10)
            times.append(leases.objects["n1"]["spec"]["renewTime"])
        assert times == sorted(set(times))
        clock.skew_seconds = 3600
        await clock.advance(10)
        assert leases.objects["n1"]["spec"]["renewTime"] == "2026-01-02T04:05:05.678901Z"


async def test_a_busy_server_is_given_the_time_it_asks_for_by_every_loop(make_node, clock, nodes, leases, host):
    def busy(_):
        return Unavailable("too many requests", retry_after_seconds=3)

    async with running(*make_node().tasks):
        await clock.advance(25)
        nodes.fail = leases.fail = busy
        host.current = host_snapshot(kernel_version="6.2.0")
        nodes.calls.clear()
        leases.calls.clear()
        await clock.advance(10)
    for calls in (nodes.calls, leases.calls):
        times = [at for at, _ in calls]
        assert times
        assert all(later - earlier >= 3 for earlier, later in pairwise(times))


async def test_a_stuck_status_write_a_stuck_sensor_and_a_stuck_watch_do_not_delay_a_renewal(
    make_node, clock, leases, nodes, host
):
    async def stuck(*_, **__):
        await asyncio.Event().wait()

    node = make_node()
    async with running(*node.tasks):
        await clock.advance(15)
        nodes.patch_status = nodes.get = nodes.list = stuck
        host.snapshot = host.glance = stuck
        nodes.cut()
        await clock.advance(300)
    assert renewals(leases) == [10.0 * n for n in range(1, 32)]


async def test_a_node_that_was_given_up_and_may_not_object_keeps_its_rhythm(make_node, clock, nodes):
    async with running(*make_node().tasks):
        await clock.advance(25)
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await nodes.patch_status("n1", {"status": {"conditions": [condition]}})
        nodes.fail = lambda verb: Forbidden("no") if verb == "patch_status" else None
        nodes.calls.clear()
        await clock.advance(60)
    assert nodes.times("patch_status") == [25.0 + 10 * tick for tick in range(7) for _ in range(5)]


async def test_a_node_that_was_given_up_is_ready_again_at_once(make_node, clock, nodes):
    async with running(*make_node().tasks):
        await clock.advance(25)
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await nodes.patch_status("n1", {"status": {"conditions": [condition]}})
        await clock.advance(0)
        assert is_ready(nodes.objects["n1"]["status"])
