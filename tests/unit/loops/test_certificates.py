from datetime import timedelta

import pytest

from agent.core.csr import client_template, serving_template
from agent.loops.certificates import CertificateGuard, CertificateLoop
from agent.ports import Forbidden, StartError, Unauthorized, Unavailable
from tests.fakes import running, settle
from tests.unit.loops.signing import FakeDesk, FakeKeys, FakeStore, certificate_pem

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(clock):
    return FakeDesk(clock)


@pytest.fixture
def store(clock):
    return FakeStore(clock)


@pytest.fixture
def told():
    return []


@pytest.fixture
def make_loop(clock, desk, store, told, dependencies):
    def build(*, template=lambda: client_template("n1"), rand=lambda: 0.5, **options):
        return CertificateLoop(
            template=template,
            store=store,
            desk=desk,
            keys=FakeKeys(),
            clock=clock,
            dependencies=dependencies,
            rand=rand,
            on_new=lambda: told.append(clock.elapsed),
            **options,
        )

    return build


async def test_the_first_certificate_is_asked_for_at_once(clock, store, told, make_loop):
    async with running(make_loop()):
        assert store.updated_at == told == [0.0]


@pytest.mark.parametrize(("rand", "due"), [(0.0, 700), (0.5, 800), (0.99, 898)])
async def test_a_certificate_is_renewed_within_the_last_third_of_its_life(clock, store, make_loop, rand, due):
    store.certificate = store.made()
    async with running(make_loop(rand=lambda: rand)):
        await clock.advance(due - 1)
        assert store.updated_at == []
        await clock.advance(2)
    assert store.updated_at == [pytest.approx(due)]


async def test_it_goes_on_and_on(clock, store, make_loop):
    async with running(make_loop()):
        await clock.advance(5000)
    assert store.updated_at == pytest.approx([0, 800, 1600, 2400, 3200, 4000, 4800])


async def test_each_request_has_a_key_of_its_own(clock, store, make_loop):
    keys = []
    async with running(make_loop()):
        for _ in range(3):
            keys.append(store.key_pem)
            await clock.advance(800)
    assert len(set(keys)) == 3


async def test_a_certificate_of_another_name_is_replaced_at_once(clock, store, make_loop):
    store.certificate = store.made("system:node:other")
    async with running(make_loop()):
        assert store.updated_at == [0.0]


async def test_one_that_is_not_meant_to_last_is_replaced_at_once(clock, store, make_loop):
    store.certificate = store.made()
    async with running(make_loop(at_once=True)):
        await clock.advance(100)
    assert store.updated_at == [0.0]


async def test_failures_are_answered_with_client_gos_patience(clock, desk, store, make_loop):
    desk.refusal = Unavailable("down")
    loop = make_loop()
    async with running(loop):
        opened = []
        for second in range(140):
            await clock.advance(1)
            opened += [second + 1] * (desk.opened - len(opened) - 1)
    assert opened == [2, 6, 14, 30, 62, 94, 126]


async def test_a_clock_that_is_wrong_does_not_flood_the_server(clock, desk, make_loop, store):
    store.life = timedelta(0)
    async with running(make_loop()):
        await clock.advance(60)
    assert len(store.updated_at) == 7  # every ten seconds; kubelet asks every second then


async def test_a_clock_that_is_set_forward_is_noticed_within_ten_seconds(clock, store, make_loop):
    store.certificate = store.made()
    async with running(make_loop()):
        await clock.advance(5)
        clock.skew_seconds = 900
        await clock.advance(10)
    assert len(store.updated_at) == 1


async def test_a_request_that_nobody_signs_is_given_up_after_15_minutes(clock, desk, make_loop):
    desk.approves = False
    async with running(make_loop()):
        await clock.advance(890)
        assert desk.names == ["csr-1"]
        await clock.advance(20)
    assert desk.names == ["csr-1", "csr-2"]


async def test_a_denied_request_is_followed_by_another(clock, desk, store, make_loop):
    desk.approves = False
    async with running(make_loop()):
        await desk.decide("csr-1", "Denied")
        await clock.advance(3)
        await desk.sign("csr-2")
        await clock.advance(1)
    assert len(store.updated_at) == 1


FORGERIES = {
    "no certificate": lambda _: "nonsense",
    "a broken one": lambda _: "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----",
    "another key": lambda wish: certificate_pem(wish | {"key": "another"}),
    "another name": lambda wish: certificate_pem(wish | {"name": "system:node:other"}),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
async def test_what_is_not_the_certificate_that_was_asked_for_is_not_kept(clock, desk, store, make_loop, forge):
    desk.forge = forge
    async with running(make_loop()):
        await clock.advance(10)
        assert store.updated_at == []
        desk.forge = certificate_pem
        await clock.advance(30)
    assert len(store.updated_at) == 1


@pytest.mark.parametrize("encoded", ["!", "A", "\u00e9", "/w=="])
async def test_a_certificate_that_is_no_base64_is_asked_for_again(clock, desk, store, make_loop, encoded):
    desk.approves = False
    async with running(make_loop()):
        await desk.decide("csr-1", "Approved", certificate=encoded)
        desk.approves = True
        await clock.advance(30)
    assert len(store.updated_at) == 1


async def test_a_server_that_ends_each_watch_at_once_is_not_flooded(clock, desk, make_loop):
    desk.approves = False
    async with running(make_loop()):
        await settle()
        for _ in range(20):
            desk.requests["csr-1"].cut()
            await settle()
    assert len(desk.requests["csr-1"].times("watch")) == 1  # no time has passed


async def test_an_address_that_is_no_ip_does_not_end_it(clock, desk, store, make_loop):
    addresses = [{"type": "InternalIP", "address": text} for text in ("not-an-ip", "192.0.2.1", "fe80::1%eth0")]
    store.names = ((), ("192.0.2.1",))
    async with running(make_loop(template=lambda: serving_template("n1", addresses))):
        await clock.advance(60)
    assert len(store.updated_at) == 1


async def test_a_deleted_request_is_followed_by_another(clock, desk, store, make_loop):
    desk.approves = False
    async with running(make_loop()):
        await desk.requests["csr-1"].delete("csr-1")
        desk.approves = True
        await clock.advance(3)
    assert len(store.updated_at) == 1


async def test_a_watch_that_breaks_loses_nothing(clock, desk, store, make_loop):
    desk.approves = False
    async with running(make_loop()):
        desk.requests["csr-1"].cut()
        await desk.sign("csr-1")
        await clock.advance(3)
    assert desk.names == ["csr-1"]
    assert len(store.updated_at) == 1


async def test_a_serving_certificate_waits_for_an_address(clock, desk, store, make_loop):
    addresses = []
    async with running(make_loop(template=lambda: serving_template("n1", addresses))):
        await clock.advance(60)
        assert desk.names == []
        addresses.append({"type": "InternalIP", "address": "192.0.2.1"})
        store.names = ((), ("192.0.2.1",))
        await clock.advance(2)
    assert desk.names == ["csr-1"]


async def test_new_addresses_need_a_new_serving_certificate(clock, desk, store, make_loop):
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    store.names = ((), ("192.0.2.1",))
    async with running(make_loop(template=lambda: serving_template("n1", addresses))):
        await clock.advance(30)
        addresses[0] = {"type": "InternalIP", "address": "192.0.2.2"}
        store.names = ((), ("192.0.2.2",))
        await clock.advance(15)
    assert desk.names == ["csr-1", "csr-2"]


async def test_a_wait_for_addresses_that_are_gone_is_given_up(clock, desk, store, make_loop):
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    desk.approves = False
    async with running(make_loop(template=lambda: serving_template("n1", addresses))):
        addresses[0] = {"type": "InternalIP", "address": "192.0.2.2"}
        await clock.advance(70)
    assert desk.names[:2] == ["csr-1", "csr-2"]


@pytest.mark.parametrize("answer", [Unauthorized("no"), Forbidden("no")], ids=["401", "403"])
async def test_five_minutes_without_a_certificate_are_the_end_if_the_server_is_well(clock, desk, make_loop, answer):
    desk.refusal = answer
    loop = make_loop()
    with pytest.raises(StartError, match="No valid client certificate is found and the server is responsive"):
        async with running(loop, CertificateGuard(loop, clock)):
            await clock.advance(320)


async def test_a_server_that_is_not_well_is_waited_for(clock, desk, make_loop):
    desk.refusal = Unavailable("down")
    loop = make_loop()
    async with running(loop, CertificateGuard(loop, clock)):
        await clock.advance(3600)


async def test_an_expired_certificate_is_the_end_if_the_server_refuses_another(clock, desk, store, make_loop):
    store.certificate = store.made()
    desk.refusal = Forbidden("no")
    loop = make_loop()
    with pytest.raises(StartError, match="has expired and the server is responsive"):
        async with running(loop, CertificateGuard(loop, clock)):
            await clock.advance(1400)
