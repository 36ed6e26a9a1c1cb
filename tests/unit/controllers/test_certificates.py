from dataclasses import replace
from datetime import timedelta

import pytest

from agent.controllers.certificates import CertificateController, ExpiryWatchdog, WantedCertificate
from agent.controllers.csr import CSRRequester
from agent.core.csr import client_template, serving_template
from agent.machinery.runner import Runner, Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.ports import Forbidden, StartError, Unauthorized, Unavailable
from tests.fakes import FakeCSRs, FakeKeys, FakeStore, certificate_pem, running, settle

pytestmark = pytest.mark.anyio


@pytest.fixture
def csrs(clock):
    return FakeCSRs(clock)


@pytest.fixture
def store(clock):
    return FakeStore(clock)


@pytest.fixture
def notified_at():
    return []


@pytest.fixture
def started(clock, csrs, store, dependencies, loop_health, notified_at):
    """Starts a controller, with its watchdog where that is asked for, and returns the Runner that calls both."""

    def start(*, template=lambda: client_template("n1"), rand=lambda: 0.5, watchdog=False, **options):
        queue = WorkQueue(clock)
        scheduling = Scheduling(
            loop="certificates", queue=queue, dependencies=replace(dependencies, rand=rand), health=loop_health
        )
        controller = CertificateController(
            WantedCertificate(template=template, **options),
            store=store,
            requester=CSRRequester(clients=csrs, keys=FakeKeys(), clock=clock),
            scheduling=scheduling,
            on_new=lambda: notified_at.append(clock.elapsed),
        )
        controller.start()
        if watchdog:
            ExpiryWatchdog(controller, scheduling).start()
        return Runner("certificates", queue, workers=2)

    return start


async def test_the_first_certificate_is_asked_for_at_once(clock, store, notified_at, started):
    async with running(started()):
        assert store.updated_at == notified_at == [0.0]


@pytest.mark.parametrize(("rand", "due"), [(0.0, 700), (0.5, 800), (0.99, 898)])
async def test_a_certificate_is_renewed_within_the_last_third_of_its_life(clock, store, started, rand, due):
    store.certificate = store.made()
    async with running(started(rand=lambda: rand)):
        await clock.advance(due - 1)
        assert store.updated_at == []
        await clock.advance(2)
    assert store.updated_at == [pytest.approx(due)]


async def test_it_goes_on_and_on(clock, store, started):
    async with running(started()):
        await clock.advance(5000)
    assert store.updated_at == pytest.approx([0, 800, 1600, 2400, 3200, 4000, 4800])


async def test_each_request_has_a_key_of_its_own(clock, store, started):
    keys = []
    async with running(started()):
        for _ in range(3):
            keys.append(store.key_pem)
            await clock.advance(800)
    assert len(set(keys)) == 3


async def test_a_certificate_of_another_name_is_replaced_at_once(clock, store, started):
    store.certificate = store.made("system:node:other")
    async with running(started()):
        assert store.updated_at == [0.0]


async def test_one_that_is_not_meant_to_last_is_replaced_at_once(clock, store, started):
    store.certificate = store.made()
    async with running(started(is_replaced_at_once=True)):
        await clock.advance(100)
    assert store.updated_at == [0.0]


async def test_failures_are_answered_with_client_gos_patience(clock, csrs, store, started):
    csrs.refusal = Unavailable("down")
    async with running(started(rand=lambda: 0.0)):
        opened = []
        for second in range(140):
            await clock.advance(1)
            opened += [second + 1] * (csrs.opened - len(opened) - 1)
    assert opened == [2, 6, 14, 30, 62, 94, 126]


async def test_a_clock_that_is_wrong_does_not_flood_the_server(clock, csrs, started, store):
    store.life = timedelta(0)
    async with running(started()):
        await clock.advance(60)
    assert len(store.updated_at) == 7  # every ten seconds; kubelet asks every second then


async def test_a_clock_that_is_set_forward_is_noticed_within_ten_seconds(clock, store, started):
    store.certificate = store.made()
    async with running(started()):
        await clock.advance(5)
        clock.skew_seconds = 900
        await clock.advance(10)
    assert len(store.updated_at) == 1


async def test_a_request_that_nobody_signs_is_given_up_after_15_minutes(clock, csrs, started):
    csrs.approves = False
    async with running(started()):
        await clock.advance(890)
        assert csrs.names == ["csr-1"]
        await clock.advance(20)
    assert csrs.names == ["csr-1", "csr-2"]


async def test_a_denied_request_is_followed_by_another(clock, csrs, store, started):
    csrs.approves = False
    async with running(started()):
        csrs.decide("csr-1", "Denied")
        await clock.advance(3)
        csrs.sign("csr-2")
        await clock.advance(1)
    assert len(store.updated_at) == 1


FORGERIES = {
    "no certificate": lambda _: "nonsense",
    "a broken one": lambda _: "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----",
    "another key": lambda wish: certificate_pem(wish | {"key": "another"}),
    "another name": lambda wish: certificate_pem(wish | {"name": "system:node:other"}),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
async def test_what_is_not_the_certificate_that_was_asked_for_is_not_kept(clock, csrs, store, started, forge):
    csrs.forge = forge
    async with running(started()):
        await clock.advance(10)
        assert store.updated_at == []
        csrs.forge = certificate_pem
        await clock.advance(30)
    assert len(store.updated_at) == 1


@pytest.mark.parametrize("encoded", ["!", "A", "\u00e9", "/w=="])
async def test_a_certificate_that_is_no_base64_is_asked_for_again(clock, csrs, store, started, encoded):
    csrs.approves = False
    async with running(started()):
        csrs.decide("csr-1", "Approved", certificate=encoded)
        csrs.approves = True
        await clock.advance(30)
    assert len(store.updated_at) == 1


async def test_a_server_that_ends_each_watch_at_once_is_not_flooded(clock, csrs, started):
    csrs.approves = False
    async with running(started()):
        await settle()
        for _ in range(20):
            csrs.cut()
            await settle()
    assert len(csrs.times("watch")) == 1  # no time has passed


async def test_an_address_that_is_no_ip_does_not_end_it(clock, csrs, store, started):
    addresses = [{"type": "InternalIP", "address": text} for text in ("not-an-ip", "192.0.2.1", "fe80::1%eth0")]
    store.names = ((), ("192.0.2.1",))
    async with running(started(template=lambda: serving_template("n1", addresses))):
        await clock.advance(60)
    assert len(store.updated_at) == 1


async def test_a_deleted_request_is_followed_by_another(clock, csrs, store, started):
    csrs.approves = False
    async with running(started()):
        csrs.drop("csr-1")
        csrs.approves = True
        await clock.advance(3)
    assert len(store.updated_at) == 1


async def test_a_watch_that_breaks_loses_nothing(clock, csrs, store, started):
    csrs.approves = False
    async with running(started()):
        csrs.cut()
        csrs.sign("csr-1")
        await clock.advance(3)
    assert csrs.names == ["csr-1"]
    assert len(store.updated_at) == 1


async def test_a_serving_certificate_waits_for_an_address(clock, csrs, store, started):
    addresses = []
    async with running(started(template=lambda: serving_template("n1", addresses))):
        await clock.advance(60)
        assert csrs.names == []
        addresses.append({"type": "InternalIP", "address": "192.0.2.1"})
        store.names = ((), ("192.0.2.1",))
        await clock.advance(2)
    assert csrs.names == ["csr-1"]


async def test_new_addresses_need_a_new_serving_certificate(clock, csrs, store, started):
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    store.names = ((), ("192.0.2.1",))
    async with running(started(template=lambda: serving_template("n1", addresses))):
        await clock.advance(30)
        addresses[0] = {"type": "InternalIP", "address": "192.0.2.2"}
        store.names = ((), ("192.0.2.2",))
        await clock.advance(15)
    assert csrs.names == ["csr-1", "csr-2"]


async def test_a_wait_for_addresses_that_are_gone_is_given_up(clock, csrs, store, started):
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    csrs.approves = False
    async with running(started(template=lambda: serving_template("n1", addresses))):
        addresses[0] = {"type": "InternalIP", "address": "192.0.2.2"}
        await clock.advance(70)
    assert csrs.names[:2] == ["csr-1", "csr-2"]


@pytest.mark.parametrize("answer", [Unauthorized("no"), Forbidden("no")], ids=["401", "403"])
async def test_five_minutes_without_a_certificate_are_the_end_if_the_server_is_well(clock, csrs, started, answer):
    csrs.refusal = answer
    fault = "No valid client certificate is found and the server is responsive"
    with pytest.RaisesGroup(pytest.RaisesExc(StartError, match=fault)):
        async with running(started(watchdog=True)):
            await clock.advance(320)


async def test_a_server_that_is_not_well_is_waited_for(clock, csrs, started):
    csrs.refusal = Unavailable("down")
    async with running(started(watchdog=True)):
        await clock.advance(3600)


async def test_an_expired_certificate_is_the_end_if_the_server_refuses_another(clock, csrs, store, started):
    store.certificate = store.made()
    csrs.refusal = Forbidden("no")
    with pytest.RaisesGroup(pytest.RaisesExc(StartError, match="has expired and the server is responsive")):
        async with running(started(watchdog=True)):
            await clock.advance(1400)


async def test_a_recovery_ends_the_backoff_early(clock, csrs, store, dependencies, started):
    csrs.refusal = Unavailable("down")
    async with running(started()):
        await clock.advance(40)
        csrs.refusal = None
        dependencies.connectivity.notify_recovered()
        await clock.advance(0)
        assert store.updated_at == [40.0]


async def test_a_recovery_brings_no_renewal_forward(clock, csrs, store, dependencies, started):
    store.life = timedelta(0)  # each certificate is due at once
    csrs.refusal = Unavailable("down")
    async with running(started(rand=lambda: 0.0)):
        csrs.refusal = None
        await clock.advance(5)
        dependencies.connectivity.notify_recovered()
        await clock.advance(6)
    assert store.updated_at == [2.0]


async def test_a_request_that_waits_to_be_signed_does_not_delay_the_watchdog(clock, csrs, started):
    csrs.approves = False
    fault = "No valid client certificate is found and the server is responsive"
    with pytest.RaisesGroup(pytest.RaisesExc(StartError, match=fault)):
        async with running(started(watchdog=True)):
            csrs.drop("csr-1")
            csrs.refusal = Forbidden("no")
            await clock.advance(240)
            csrs.refusal = None  # from here on, a CSR waits to be signed
            await clock.advance(80)


async def test_an_unexpected_error_is_followed_by_another_request(clock, csrs, store, started):
    csrs.approves = False
    async with running(started()):
        csrs.fail = lambda verb: ValueError("nobody expects this") if verb == "list" else None
        await clock.advance(62)
        csrs.sign("csr-2")
        await clock.advance(1)
    assert len(store.updated_at) == 1


async def test_a_runner_that_is_run_again_goes_on_with_the_same_deadline(clock, store, started):
    runner = started()
    async with running(runner):  # until the first certificate is there
        await clock.advance(1)
    async with running(runner):  # as long as the node lives
        await clock.advance(810)
    assert store.updated_at == pytest.approx([0, 800])
