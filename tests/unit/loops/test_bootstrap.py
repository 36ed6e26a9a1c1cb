import asyncio
import base64
from datetime import timedelta

import pytest

from agent.core.csr import client_template
from agent.loops.bootstrap import Bootstrap
from agent.ports import Forbidden, StartError, Unauthorized, Unavailable
from tests.fakes import running, settle
from tests.unit.core.certificates import made
from tests.unit.loops.signing import FakeDesk, FakeKeys, FakeStore, certificate_pem

pytestmark = pytest.mark.anyio


class FakeFiles:
    def __init__(self):
        self.kept = ""
        self.finished = False

    async def key(self):
        return self.kept

    async def keep_key(self, key_pem):
        self.kept = key_pem

    async def finish(self):
        self.kept, self.finished = "", True


@pytest.fixture
def desk(clock):
    return FakeDesk(clock)


@pytest.fixture
def keys():
    return FakeKeys()


@pytest.fixture
def files():
    return FakeFiles()


@pytest.fixture
def done():
    return asyncio.Event()


@pytest.fixture
def bootstrap(clock, desk, keys, files, done):
    store = FakeStore(clock)
    return Bootstrap(
        template=client_template("n1"),
        files=files,
        store=store,
        desk=desk,
        keys=keys,
        clock=clock,
        on_done=done.set,
    )


async def test_it_ends_with_a_certificate_and_a_kubeconfig(bootstrap, files, done):
    await bootstrap.run()
    assert files.finished
    assert done.is_set()


async def test_the_key_is_kept_before_anybody_is_asked(bootstrap, desk, files):
    desk.refusal = Unauthorized("no")
    with pytest.raises(StartError, match="no"):
        await bootstrap.run()
    assert files.kept == "key-1"
    assert not files.finished


async def test_the_same_key_leads_to_the_same_request(bootstrap, desk, files, clock):
    desk.approves = False
    for _ in range(2):
        async with running(bootstrap):
            await clock.advance(5)
    assert len(desk.names) == 1


async def test_a_request_that_was_found_and_is_not_ours_is_not_waited_for(bootstrap, desk, keys, files, clock):
    desk.approves = False
    async with running(bootstrap):
        await clock.advance(5)
    keys.fault_found = "csr subjects differ"
    with pytest.raises(StartError, match="retrieved csr is not compatible: csr subjects differ"):
        await bootstrap.run()


async def test_a_certificate_that_expired_in_the_request_that_was_found_is_not_taken(bootstrap, desk, files, clock):
    desk.approves = False
    async with running(bootstrap):
        await clock.advance(5)
    pem = made(begin=clock.now() - timedelta(days=2), end=clock.now() - timedelta(seconds=1))
    await desk.decide(desk.names[0], "Approved", certificate=base64.b64encode(pem.encode()).decode())
    with pytest.raises(
        StartError, match="retrieved csr is not compatible: one of the certificates for the CSR has expi"
    ):
        await bootstrap.run()
    assert not files.finished


async def test_a_key_that_is_none_is_replaced(bootstrap, keys, files):
    files.kept = "half a key"
    keys.unusable.add("half a key")
    await bootstrap.run()
    assert files.finished


async def test_a_server_that_does_not_answer_is_given_a_minute(bootstrap, desk, clock, done):
    desk.refusal = Unavailable("connection refused")
    async with running(bootstrap):
        await clock.advance(50)
        desk.refusal = None
        await clock.advance(3)
        assert done.is_set()


async def test_after_that_minute_the_start_has_failed(bootstrap, desk, clock):
    desk.refusal = Unavailable("connection refused")
    with pytest.raises(StartError, match="connection refused"):
        async with running(bootstrap):
            await clock.advance(70)


async def test_after_an_hour_without_a_signature_the_start_has_failed(bootstrap, desk, clock):
    desk.approves = False
    with pytest.raises(StartError, match="timed out waiting for the condition"):
        async with running(bootstrap):
            await clock.advance(3700)


async def test_one_who_may_not_ask_is_told_so_at_once(bootstrap, desk, clock):
    desk.refusal = Forbidden("cannot create resource certificatesigningrequests")
    with pytest.raises(StartError, match="cannot create resource"):
        async with running(bootstrap):
            await settle()


async def test_what_is_not_the_certificate_that_was_asked_for_is_asked_for_with_another_key(
    bootstrap, desk, clock, done, files
):
    desk.forge = lambda wish: certificate_pem(wish | {"name": "system:node:other"})
    async with running(bootstrap):
        await clock.advance(25)
        assert len(desk.names) == 3
        assert not done.is_set()
        desk.forge = certificate_pem
        await clock.advance(10)
        assert done.is_set()
    assert files.finished


async def test_a_request_that_was_found_may_be_nonsense(bootstrap, desk, keys, clock, done):
    desk.approves = False
    async with running(bootstrap):
        await clock.advance(5)
    found = desk.requests[desk.names[0]]
    await found.patch(desk.names[0], {"spec": {"request": "!"}})
    keys.fault_found = "no request at all"
    with pytest.raises(StartError, match="retrieved csr is not compatible: no request at all"):
        await bootstrap.run()
