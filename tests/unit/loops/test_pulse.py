import pytest

from agent.core.portrait import Renewal
from agent.loops.pulse import Pulse
from agent.ports import Forbidden, Unavailable
from tests.fakes import running
from tests.settings import Config, Eviction, Heartbeat, Registration

pytestmark = pytest.mark.anyio

AWAY = "no route to the API server"
LEASE = Heartbeat(lease_duration_seconds=40, status_update_seconds=10.0)


@pytest.fixture
def pulse(clock):
    return Pulse(Config(node_name="n1", heartbeat=LEASE), clock)


def everything(node):
    """All loops of a node, each once."""
    return dict.fromkeys((*node.loops, *node.lasting))


@pytest.fixture
def cut(nodes, leases, csinodes):
    """Cuts the node off from the API server, and lets it back."""

    def switch(away):
        for objects in (nodes, leases, csinodes):
            objects.fail = (lambda _: Unavailable(AWAY)) if away else (lambda _: None)
            objects.cut()

    return switch


async def test_a_node_that_only_lives_is_never_red(make_node, clock):
    node = make_node(heartbeat=LEASE)
    node.start()
    async with running(*everything(node)):
        for _ in range(10):
            await clock.advance(60)
            assert not node.pulse.faults()
    assert node.pulse.lease.missed == 0


async def test_a_node_that_is_cut_off_is_red_when_its_lease_is_over_and_says_why(make_node, clock, cut):
    node = make_node(heartbeat=LEASE)
    node.start()
    async with running(*everything(node)):
        await clock.advance(10)
        cut(True)
        await clock.advance(39)
        assert not node.pulse.faults()
        await clock.advance(2)
        assert node.pulse.faults() == {"lease": f"no success for 41s: {AWAY}"}
        cut(False)
        await clock.advance(10)
        assert not node.pulse.faults()


async def test_a_status_that_cannot_be_sent_is_red_after_three_rounds(make_node, clock, nodes, host):
    node = make_node(heartbeat=Heartbeat(status_update_seconds=60.0, status_report_seconds=1.0))
    node.start()
    async with running(*everything(node)):
        await clock.advance(1)
        nodes.fail = lambda verb: Forbidden("you may not") if verb == "patch_status" else None
        await clock.advance(181)
        assert node.pulse.faults() == {"status": "no success for 3m2s: you may not"}


async def test_a_node_that_may_not_register_is_red_with_the_servers_words(make_node, clock, nodes):
    nodes.fail = lambda verb: Forbidden("no node for you") if verb == "create" else None
    node = make_node(heartbeat=LEASE)
    node.start()
    async with running(*everything(node)):
        await clock.advance(41)
        assert node.pulse.faults() == {"status": "no success for 41s: unable to register: no node for you"}


async def test_a_watch_that_does_not_come_back_is_red_and_one_that_is_quiet_is_not(make_node, clock, nodes):
    node = make_node(heartbeat=LEASE)
    node.start()
    async with running(*everything(node)):
        await clock.advance(280)
        assert not node.pulse.faults()
        nodes.fail = lambda verb: Forbidden("no watch for you") if verb in {"watch", "list"} else None
        nodes.cut()
        await clock.advance(119)
        assert not node.pulse.faults()
        await clock.advance(2)
        assert node.pulse.faults() == {"watch": "no success for 2m1s: no watch for you"}


@pytest.mark.parametrize(
    "registration",
    [Registration(on_node_deleted="idle"), Registration(register_node=False)],
    ids=["idle after its Node was deleted", "waiting for a Node that somebody else makes"],
)
async def test_a_node_without_a_node_object_that_is_as_it_was_told_to_be_is_not_red(
    make_node, clock, nodes, leases, registration
):
    node = make_node(heartbeat=LEASE, registration=registration)
    node.start()
    async with running(*everything(node)):
        await clock.advance(15)
        if registration.register_node:
            await nodes.delete("n1")
            await leases.delete("n1")
        await clock.advance(130)
        assert not node.pulse.faults()
        assert not node.pulse.stalls()


async def test_before_the_start_nothing_is_late(pulse, clock):
    clock.elapsed = 3600
    assert not pulse.faults()
    pulse.begin()
    clock.elapsed += 39
    assert "lease" not in pulse.faults()
    clock.elapsed += 2
    assert pulse.faults()["lease"] == "no success for 41s"


async def test_an_event_loop_that_stood_still_is_noticed(pulse, clock):
    pulse.begin()
    clock.elapsed += 300
    clock.skew_seconds = -300  # whatever the wall clock says
    assert set(pulse.faults()) == {"lease", "status", "sensors"}
    assert set(pulse.stalls()) == {"lease", "status", "sensors"}


async def test_a_loop_that_fails_is_late_but_not_stuck(pulse, clock):
    pulse.begin()
    for _ in range(30):
        clock.elapsed += 10
        pulse.lease.failed(AWAY)
        pulse.sensors.ok(0.1)
        pulse.status.ok(0.1)
        pulse.watch.settled()
        pulse.csinode.settled()
    assert set(pulse.faults()) == {"lease"}
    assert not pulse.stalls()


async def test_a_slow_sensor_interval_makes_no_node_red(clock):
    pulse = Pulse(Config(node_name="n1", eviction=Eviction(sensor_seconds=60.0)), clock)
    pulse.begin()
    clock.elapsed += 62
    assert "sensors" not in pulse.faults()


async def test_the_strip_tells_ok_late_and_failed(pulse, clock):
    pulse.begin()
    for at, beat in (
        (10, pulse.lease.ok),
        (20.2, pulse.lease.ok),
        (30.4, lambda _: pulse.lease.failed(AWAY)),
        (37.5, pulse.lease.ok),
    ):
        clock.elapsed = at
        beat(0.05)
    clock.elapsed = 40
    assert pulse.lease.history() == [
        Renewal(30, "ok"),
        Renewal(pytest.approx(19.8), "ok"),
        Renewal(pytest.approx(9.6), "failed"),
        Renewal(2.5, "late"),
    ]
    assert pulse.lease.missed == 1
    clock.elapsed = 635
    assert [beat.verdict for beat in pulse.lease.history()] == ["late"]


async def test_the_strip_of_a_very_fast_lease_stays_small(clock):
    pulse = Pulse(Config(node_name="n1", heartbeat=Heartbeat(lease_duration_seconds=1)), clock)
    pulse.begin()
    for _ in range(10_000):
        clock.elapsed += 0.25
        pulse.lease.ok(0.01)
    assert len(pulse.lease.history()) == 600


async def test_renewals_are_missed_while_they_do_not_come_not_only_afterwards(pulse, clock):
    pulse.begin()
    pulse.lease.ok(0.1)
    clock.elapsed += 14.9
    assert pulse.lease.missed == 0
    clock.elapsed += 20
    assert pulse.lease.missed == 2
    pulse.lease.ok(0.1)
    assert pulse.lease.missed == 2


async def test_the_last_failure_is_remembered_after_it_healed(pulse, clock):
    pulse.begin()
    assert pulse.last_failure() is None
    pulse.watch.failed("first")
    clock.elapsed += 1
    pulse.lease.failed("second")
    pulse.lease.ok(0.1)
    assert pulse.last_failure() == (1, "lease", "second")


async def test_all_of_it_is_metrics(pulse, clock):
    pulse.begin()
    pulse.lease.ok(0.2)
    pulse.status.failed(AWAY)
    clock.elapsed += 41
    told = {
        (family.name + sample.suffix, sample.labels.get("loop"), sample.labels.get("le")): sample.value
        for family in pulse.families()
        for sample in family.samples
    }
    assert told["fake_kubelet_loop_age_seconds", "lease", None] == 41
    assert told["fake_kubelet_loop_deadline_seconds", "watch", None] == 120
    assert told["fake_kubelet_loop_healthy", "lease", None] == 0
    assert told["fake_kubelet_loop_healthy", "watch", None] == 1
    assert told["fake_kubelet_loop_failures_total", "status", None] == 1
    assert told["fake_kubelet_loop_duration_seconds_bucket", "lease", "0.3"] == 1
    assert told["fake_kubelet_lease_renewals_missed_total", None, None] == 3
