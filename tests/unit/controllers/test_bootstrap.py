import asyncio
import base64
from datetime import timedelta

import pytest

from agent.controllers.bootstrap import BootstrapController
from agent.controllers.csr import CSRRequester
from agent.core.csr import CLIENT_SIGNER, client_template
from agent.machinery.runner import Runner, Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.ports import Forbidden, StartError, Unauthorized, Unavailable
from tests.fakes import FakeBootstrapState, FakeCSRs, FakeKeys, FakeStore, certificate_pem, running, settle
from tests.unit.core.certificates import made

pytestmark = pytest.mark.anyio


@pytest.fixture
def csrs(clock):
    return FakeCSRs(clock)


@pytest.fixture
def keys():
    return FakeKeys()


@pytest.fixture
def files():
    return FakeBootstrapState()


@pytest.fixture
def done():
    return asyncio.Event()


@pytest.fixture
def started(clock, csrs, keys, files, done, dependencies, loop_health):
    """Starts a controller, as each start of the daemon does, and returns the Runner that calls it."""

    def start():
        queue = WorkQueue(clock)
        BootstrapController(
            template=client_template("n1"),
            state=files,
            store=FakeStore(clock),
            requester=CSRRequester(clients=csrs, keys=keys, clock=clock),
            scheduling=Scheduling(loop="certificates", queue=queue, dependencies=dependencies, health=loop_health),
            on_done=done.set,
        ).start()
        return Runner("bootstrap", queue)

    return start


def raises_start_error(match):
    return pytest.RaisesGroup(pytest.RaisesExc(StartError, match=match))


async def test_it_ends_with_a_certificate_and_a_kubeconfig(started, files, done):
    async with running(started()):
        assert files.finished
        assert done.is_set()


async def test_the_key_is_kept_before_anybody_is_asked(started, csrs, files):
    csrs.refusal = Unauthorized("no")
    with raises_start_error("no"):
        await started().run()
    assert files.kept == "key-1"
    assert not files.finished


async def test_the_same_key_leads_to_the_same_request(started, csrs, files, clock):
    csrs.approves = False
    for _ in range(2):
        async with running(started()):
            await clock.advance(5)
    assert len(csrs.names) == 1


async def test_a_request_that_was_found_and_is_not_ours_is_not_waited_for(started, csrs, keys, files, clock):
    csrs.approves = False
    async with running(started()):
        await clock.advance(5)
    keys.fault_found = "csr subjects differ"
    with raises_start_error("retrieved csr is not compatible: csr subjects differ"):
        await started().run()


async def test_a_certificate_that_expired_in_the_request_that_was_found_is_not_taken(started, csrs, files, clock):
    csrs.approves = False
    async with running(started()):
        await clock.advance(5)
    pem = made(begin=clock.now() - timedelta(days=2), end=clock.now() - timedelta(seconds=1))
    csrs.decide(csrs.names[0], "Approved", certificate=base64.b64encode(pem.encode()).decode())
    with raises_start_error("retrieved csr is not compatible: one of the certificates for the CSR has expi"):
        await started().run()
    assert not files.finished


async def test_a_key_that_is_none_is_replaced(started, keys, files):
    files.kept = "half a key"
    keys.unusable.add("half a key")
    async with running(started()):
        assert files.finished


async def test_a_server_that_does_not_answer_is_given_a_minute(started, csrs, clock, done):
    csrs.refusal = Unavailable("connection refused")
    async with running(started()):
        await clock.advance(50)
        csrs.refusal = None
        await clock.advance(3)
        assert done.is_set()


async def test_after_that_minute_the_start_has_failed(started, csrs, clock):
    csrs.refusal = Unavailable("connection refused")
    with raises_start_error("connection refused"):
        async with running(started()):
            await clock.advance(70)


async def test_after_an_hour_without_a_signature_the_start_has_failed(started, csrs, clock):
    csrs.approves = False
    with raises_start_error("timed out waiting for the condition"):
        async with running(started()):
            await clock.advance(3700)


async def test_one_who_may_not_ask_is_told_so_at_once(started, csrs, clock):
    csrs.refusal = Forbidden("cannot create resource certificatesigningrequests")
    with raises_start_error("cannot create resource"):
        async with running(started()):
            await settle()


async def test_what_is_not_the_certificate_that_was_asked_for_is_asked_for_with_another_key(
    started, csrs, clock, done, files
):
    csrs.forge = lambda wish: certificate_pem(wish | {"name": "system:node:other"})
    async with running(started()):
        await clock.advance(25)
        assert len(csrs.names) == 3
        assert not done.is_set()
        csrs.forge = certificate_pem
        await clock.advance(10)
        assert done.is_set()
    assert files.finished


async def test_a_request_that_was_found_may_be_nonsense(started, csrs, keys, clock, done):
    csrs.approves = False
    async with running(started()):
        await clock.advance(5)
    csrs.put(csrs.objects[csrs.names[0]] | {"spec": {"signerName": CLIENT_SIGNER, "request": "!"}})
    keys.fault_found = "no request at all"
    with raises_start_error("retrieved csr is not compatible: no request at all"):
        await started().run()
