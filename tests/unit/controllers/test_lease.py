import logging
from dataclasses import replace

import pytest

from agent.controllers.lease import LeaseController
from agent.machinery.runner import Runner
from agent.ports import Conflict, Forbidden, NotFound, Unavailable
from tests.fakes import running

pytestmark = pytest.mark.anyio

NODE = {"metadata": {"name": "n1"}}


@pytest.fixture
def make(leases, nodes, state, scheduling):
    def build(rand=lambda: 0.0, nodes=nodes):
        LeaseController(
            state,
            leases=leases,
            nodes=nodes,
            scheduling=replace(scheduling, dependencies=replace(scheduling.dependencies, rand=rand)),
        ).start()
        return Runner("lease", scheduling.queue)

    return build


@pytest.fixture
def loop(make):
    return make()


@pytest.fixture
async def node(nodes, state):
    node = await nodes.create(NODE)
    state.register(node["metadata"]["uid"])
    return node


async def test_a_40_second_lease_is_renewed_every_10_seconds(clock, leases, node, loop):
    async with running(loop):
        await clock.advance(30)
    assert leases.times("create") == [0]
    assert leases.times("replace") == [10, 20, 30]
    assert leases.objects["n1"]["spec"]["renewTime"] == "2026-01-02T03:04:35.678901Z"


async def test_jitter_stretches_the_period_by_at_most_4_percent(clock, leases, node, make):
    async with running(make(rand=lambda: 1.0)):
        await clock.advance(21)
    assert leases.times("replace") == pytest.approx([10.4, 20.8])


async def test_renewals_write_without_reading(clock, leases, nodes, node, loop):
    async with running(loop):
        await clock.advance(100)
    assert leases.times("get") == [0]
    assert nodes.times("get") == [0]


async def test_the_lease_belongs_to_the_living_node(leases, node, loop):
    async with running(loop):
        pass
    owner = leases.objects["n1"]["metadata"]["ownerReferences"]
    assert owner == [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}]


async def test_a_lease_without_owner_gets_one_and_keeps_its_holder(clock, leases, node, loop):
    await leases.create({"metadata": {"name": "n1"}, "spec": {"holderIdentity": "somebody"}})
    async with running(loop):
        pass
    assert leases.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert leases.objects["n1"]["spec"]["holderIdentity"] == "somebody"


async def test_no_lease_without_a_node_and_one_at_once_when_it_appears(clock, leases, nodes, state, loop):
    async with running(loop):
        await clock.advance(3)
        assert leases.objects == {}
        state.register((await nodes.create(NODE))["metadata"]["uid"])
        await clock.advance(0)
        assert leases.times("create") == [3]


async def test_a_deleted_lease_is_made_again_within_the_tick(clock, leases, node, loop):
    async with running(loop):
        leases.clear()
        await clock.advance(10)
    assert leases.times("create") == [0, 10]


async def test_a_lease_that_somebody_else_changed_is_read_again_and_renewed(clock, leases, node, loop):
    async with running(loop):
        lease = await leases.get("n1")
        await leases.replace(lease | {"spec": lease["spec"] | {"leaseDurationSeconds": 41}})
        before = len(leases.calls)
        await clock.advance(10)
    assert [verb for _, verb in leases.calls[before:]] == ["replace", "get", "replace"]


async def test_a_server_that_is_away_is_asked_with_kubelets_patience(clock, leases, node, loop, caplog):
    leases.fail = lambda _: Unavailable("connection refused")
    async with running(loop):
        await clock.advance(27)
    assert leases.times("get") == pytest.approx([0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 19.6, 26.6])
    line = next(record for record in caplog.records if record.msg == "Failed to ensure lease exists, will retry")
    assert line.args["interval"] == "200ms"


async def test_chance_makes_no_retry_later_than_a_kubelets(clock, leases, node, make):
    leases.fail = lambda _: Unavailable("connection refused")
    async with running(make(rand=lambda: 1.0)):
        await clock.advance(13)
    assert leases.times("get") == pytest.approx([0.96 * at for at in (0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6)])


async def test_a_failing_renewal_is_tried_five_times_and_then_from_the_start(clock, leases, node, loop):
    async with running(loop):
        leases.fail = lambda verb: Unavailable("503") if verb == "replace" else None
        await clock.advance(10)
    assert leases.times("replace") == [10] * 10  # five with what it had, five with what it read again
    assert leases.times("get") == [0, 10]


async def test_the_server_may_ask_for_more_patience(clock, leases, node, loop):
    leases.fail = lambda _: Unavailable("too many requests", retry_after_seconds=5)
    async with running(loop):
        await clock.advance(11)
    assert leases.times("get") == [0, 5, 10]


async def test_recovery_needs_nobody(clock, leases, node, loop):
    async with running(loop):
        leases.fail = lambda _: Forbidden("no")
        await clock.advance(60)
        leases.fail = lambda _: None
        await clock.advance(7)
        assert leases.objects["n1"]["spec"]["renewTime"] > "2026-01-02T03:05:05"


async def test_a_renewal_that_works_says_nothing(clock, node, loop, caplog):
    caplog.set_level(logging.INFO)
    async with running(loop):
        await clock.advance(60)
    assert caplog.records == []


async def test_a_forbidden_lease_is_told_in_the_servers_words_with_the_interval(clock, leases, node, loop, caplog):
    words = 'leases.coordination.k8s.io "n1" is forbidden: User "u" cannot get resource "leases"'
    leases.fail = lambda _: Forbidden(words)
    async with running(loop):
        await clock.advance(60)
    lines = [record.args for record in caplog.records if record.msg == "Failed to ensure lease exists, will retry"]
    assert [line["interval"] for line in lines][:7] == ["200ms", "400ms", "800ms", "1.6s", "3.2s", "6.4s", "7s"]
    assert str(lines[0]["err"]) == words


async def test_a_storm_of_conflicts_ends_with_the_tick_and_the_next_one_starts_afresh(clock, leases, node, loop):
    async with running(loop):
        leases.fail = lambda verb: Conflict("modified") if verb == "replace" else None
        await clock.advance(10)
        assert leases.times("replace") == [10] * 10
        leases.fail = lambda _: None
        await clock.advance(10)
    assert leases.times("replace")[10:] == [20]


async def test_a_lease_of_an_earlier_node_gets_the_living_one_as_owner(clock, leases, nodes, state, node, loop):
    async with running(loop):
        await nodes.delete("n1")
        state.forget()
        state.register((await nodes.create(NODE))["metadata"]["uid"])
        await clock.advance(0)
        assert leases.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == nodes.objects["n1"]["metadata"]["uid"]


async def test_a_lease_that_went_with_its_node_is_made_again_without_renewing_it_first(
    clock, leases, nodes, state, node, loop
):
    async with running(loop):
        await nodes.delete("n1")
        leases.clear()
        state.forget()
        before = len(leases.calls)
        state.register((await nodes.create(NODE))["metadata"]["uid"])
        await clock.advance(0)
    assert [verb for _, verb in leases.calls[before:]] == ["create"]


async def test_an_answer_that_the_registration_has_overtaken_deletes_no_node(clock, leases, nodes, state, make, caplog):
    class Overtaken:
        """Answers the first read from before the Node was created, after that."""

        async def get(self, name):
            if not nodes.objects:
                state.register((await nodes.create(NODE))["metadata"]["uid"])
                raise NotFound('nodes "n1" not found')
            return await nodes.get(name)

    async with running(make(nodes=Overtaken())):
        await clock.advance(0)
    assert state.uid == nodes.objects["n1"]["metadata"]["uid"]
    assert leases.objects["n1"]["metadata"]["ownerReferences"][0]["uid"] == state.uid
    assert [record.msg for record in caplog.records if record.levelno >= logging.WARNING] == []
