import pytest

from agent.core.metrics import Registry
from agent.core.node_view import Renewal
from agent.machinery.health import HealthRegistry, NodeDetails
from agent.ports import Forbidden, Unavailable
from tests.fakes import running
from tests.settings import Heartbeat, Registration

pytestmark = pytest.mark.anyio

AWAY = "no route to the API server"
LEASE = Heartbeat(lease_duration_seconds=40, status_update_seconds=10.0)


@pytest.fixture
def metrics():
    return Registry()


@pytest.fixture
def registry(clock, metrics):
    return HealthRegistry(clock, metrics, NodeDetails())


@pytest.fixture
def lease(registry):
    return registry.lease(deadline_seconds=40, period_seconds=10, node_name="n1")


@pytest.fixture
def status(registry):
    return registry.loop("status", deadline_seconds=40, node_name="n1")


@pytest.fixture
def watch(registry):
    return registry.loop("watch", deadline_seconds=120)


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
    async with running(*node.tasks):
        for _ in range(10):
            await clock.advance(60)
            assert not node.health.faults()
    assert node.node.lease_health.missed == 0


async def test_a_node_that_is_cut_off_is_red_when_its_lease_is_over_and_says_why(make_node, clock, cut):
    node = make_node(heartbeat=LEASE)
    async with running(*node.tasks):
        await clock.advance(10)
        cut(True)
        await clock.advance(39)
        assert not node.health.faults()
        await clock.advance(2)
        assert node.health.faults() == {"lease": f"no success for 41s: {AWAY}"}
        cut(False)
        await clock.advance(10)
        assert not node.health.faults()


async def test_a_status_that_cannot_be_sent_is_red_after_three_rounds(make_node, clock, nodes, host):
    node = make_node(heartbeat=Heartbeat(status_update_seconds=60.0, status_report_seconds=1.0))
    async with running(*node.tasks):
        await clock.advance(1)
        nodes.fail = lambda verb: Forbidden("you may not") if verb == "patch_status" else None
        await clock.advance(181)
        assert node.health.faults() == {"status": "no success for 3m2s: you may not"}


async def test_a_node_that_may_not_register_is_red_with_the_servers_words(make_node, clock, nodes):
    nodes.fail = lambda verb: Forbidden("no node for you") if verb == "create" else None
    node = make_node(heartbeat=LEASE)
    async with running(*node.tasks):
        await clock.advance(41)
        assert node.health.faults() == {"status": "no success for 41s: unable to register: no node for you"}


async def test_a_watch_that_does_not_come_back_is_red_and_one_that_is_quiet_is_not(make_node, clock, nodes):
    node = make_node(heartbeat=LEASE)
    async with running(*node.tasks):
        await clock.advance(280)
        assert not node.health.faults()
        nodes.fail = lambda verb: Forbidden("no watch for you") if verb in {"watch", "list"} else None
        nodes.cut()
        await clock.advance(119)
        assert not node.health.faults()
        await clock.advance(2)
        assert node.health.faults() == {"watch": "no success for 2m1s: no watch for you"}


@pytest.mark.parametrize(
    "registration",
    [Registration(on_node_deleted="idle"), Registration(register_node=False)],
    ids=["idle after its Node was deleted", "waiting for a Node that somebody else makes"],
)
async def test_a_node_without_a_node_object_that_is_as_it_was_told_to_be_is_not_red(
    make_node, clock, nodes, leases, registration
):
    node = make_node(heartbeat=LEASE, registration=registration)
    async with running(*node.tasks):
        await clock.advance(15)
        if registration.register_node:
            await nodes.delete("n1")
            await leases.delete("n1")
        await clock.advance(130)
        assert not node.health.faults()
        assert not node.health.stalls()


async def test_before_the_start_nothing_is_late(registry, lease, clock):
    clock.elapsed = 3600
    assert not registry.faults()
    lease.begin()
    clock.elapsed += 39
    assert not registry.faults()
    clock.elapsed += 2
    assert registry.faults() == {"lease": "no success for 41s"}


async def test_an_event_loop_that_stood_still_is_noticed(make_node, clock):
    node = make_node(heartbeat=LEASE)
    clock.elapsed += 300
    clock.skew_seconds = -300  # whatever the wall clock says
    assert set(node.health.faults()) == {"lease", "status", "sensors"}
    assert set(node.health.stalls()) == {"lease", "status", "sensors"}


async def test_a_loop_that_fails_is_late_but_not_stuck(registry, lease, status, watch, clock):
    lease.begin()
    status.begin()
    for _ in range(30):
        clock.elapsed += 10
        lease.failed(AWAY)
        status.ok(0.1)
        watch.settled()
    assert set(registry.faults()) == {"lease"}
    assert not registry.stalls()


async def test_of_several_nodes_the_one_that_is_late_is_named(registry, lease, clock):
    other = registry.lease(deadline_seconds=40, period_seconds=10, node_name="n2")
    lease.begin()
    other.begin()
    clock.elapsed += 30
    lease.ok(0.1)
    clock.elapsed += 11
    assert registry.faults() == {"lease": "n2: no success for 41s"}


async def test_a_slow_sensor_interval_makes_no_node_red(make_node, clock):
    node = make_node(sensor_seconds=60.0)
    clock.elapsed += 62
    assert "sensors" not in node.health.faults()


async def test_the_strip_tells_ok_late_and_failed(lease, clock):
    lease.begin()
    for at, report in (
        (10, lease.ok),
        (20.2, lease.ok),
        (30.4, lambda _: lease.failed(AWAY)),
        (37.5, lease.ok),
    ):
        clock.elapsed = at
        report(0.05)
    clock.elapsed = 40
    assert lease.history() == [
        Renewal(30, "ok"),
        Renewal(pytest.approx(19.8), "ok"),
        Renewal(pytest.approx(9.6), "failed"),
        Renewal(2.5, "late"),
    ]
    assert lease.missed == 1
    clock.elapsed = 635
    assert [renewal.verdict for renewal in lease.history()] == ["late"]


async def test_the_strip_of_a_very_fast_lease_stays_small(registry, clock):
    lease = registry.lease(deadline_seconds=1, period_seconds=0.25)
    lease.begin()
    for _ in range(10_000):
        clock.elapsed += 0.25
        lease.ok(0.01)
    assert len(lease.history()) == 600


async def test_renewals_are_missed_while_they_do_not_come_not_only_afterwards(lease, clock):
    lease.begin()
    lease.ok(0.1)
    clock.elapsed += 14.9
    assert lease.missed == 0
    clock.elapsed += 20
    assert lease.missed == 2
    lease.ok(0.1)
    assert lease.missed == 2


async def test_the_last_failure_is_remembered_after_it_healed(registry, lease, watch, clock):
    assert registry.last_failure() is None
    watch.failed("first")
    clock.elapsed += 1
    lease.failed("second")
    lease.ok(0.1)
    assert registry.last_failure() == (1, "lease", "second")


async def test_all_of_it_is_metrics(metrics, lease, status, watch, clock):
    lease.begin()
    status.begin()
    lease.ok(0.2)
    status.failed(AWAY)
    clock.elapsed += 41
    told = {
        (family.name + sample.suffix, sample.labels.get("loop"), sample.labels.get("le")): sample.value
        for family in metrics.families()
        for sample in family.samples
    }
    assert told["fake_kubelet_loop_age_seconds", "lease", None] == 41
    assert told["fake_kubelet_loop_deadline_seconds", "watch", None] == 120
    assert told["fake_kubelet_loop_healthy", "lease", None] == 0
    assert told["fake_kubelet_loop_healthy", "watch", None] == 1
    assert told["fake_kubelet_loop_failures_total", "status", None] == 1
    assert told["fake_kubelet_loop_duration_seconds_bucket", "lease", "0.3"] == 1
    assert told["fake_kubelet_lease_renewals_missed_total", None, None] == 3
