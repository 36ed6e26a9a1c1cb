import asyncio
import os
import ssl
from contextlib import suppress

import pytest

from agent.adapters.certificates import serving as module
from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.certificates.serving import (
    ServingCertificate,
    can_store_pair,
    ensure_self_signed,
    write_self_signed,
)
from agent.adapters.tls import memory_file, path_of
from agent.core.x509 import read_certificates
from agent.ports import StartError
from tests.fakes import FakeClock, running, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def pairs():
    return [await KeyWorker().self_signed(name) for name in ("first", "second")]


@pytest.fixture
def files(tmp_path):
    return tmp_path / "kubelet.crt", tmp_path / "kubelet.key"


@pytest.fixture
def serving(files):
    return ServingCertificate(*files, clock=FakeClock())


def put(files, pair):
    for path, text in zip(files, pair, strict=True):
        path.write_text(text)


async def shown(context):
    """The name in the certificate that a client gets to see, on a connection of its own."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    try:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=client)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    finally:
        server.close()
    return read_certificates(ssl.DER_cert_to_PEM_cert(der))[0].common_name.partition("@")[0]


async def test_new_files_are_served_to_new_connections_without_a_restart(serving, files, pairs):
    put(files, pairs[0])
    await serving.sync()
    assert await shown(serving.context) == "first"
    put(files, pairs[1])
    await serving.sync()
    assert await shown(serving.context) == "second"


def with_session(context):
    """Both ends of a connection whose session the server keeps, as long as they are not let go."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version, client.options = ssl.TLSVersion.TLSv1_2, client.options | ssl.OP_NO_TICKET
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(one, other), context.wrap_bio(other, one, server_side=True)
    for end in (*ends, *ends):  # two flights from each
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return ends


async def test_a_context_that_keeps_many_sessions_is_replaced(serving, files, pairs, monkeypatch):
    monkeypatch.setattr(module, "_MOST_SESSIONS", 2)
    put(files, pairs[0])
    await serving.sync()
    first, ends = serving.context, []
    for is_same in (True, True, False):
        ends += with_session(first)
        await serving.sync()
        assert (serving.context is first) == is_same


async def test_without_a_certificate_handshakes_fail(serving):
    await serving.sync()
    assert not serving.is_ready
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await shown(serving.context)


async def test_half_a_change_changes_nothing(serving, files, pairs, caplog):
    put(files, pairs[0])
    await serving.sync()
    files[0].write_text(pairs[1].certificate_pem)
    for _ in range(3):
        await serving.sync()
    assert await shown(serving.context) == "first"
    assert len([r for r in caplog.records if "invalid certificate and key pair" in r.message]) == 1


async def test_files_are_looked_at_every_ten_seconds_and_at_once_when_asked(files, pairs):
    clock = FakeClock()
    serving = ServingCertificate(*files, clock=clock)
    async with running(serving):
        put(files, pairs[0])
        serving.reload_requested.set()
        await until(lambda: serving.is_ready)  # a thread is at work, and its end makes no event


async def test_a_pair_is_made_where_there_is_none_and_then_kept(files):
    await ensure_self_signed(*files, host="n1", key_worker=KeyWorker())
    before = [path.read_text() for path in files]
    await ensure_self_signed(*files, host="n1", key_worker=KeyWorker())
    assert [path.read_text() for path in files] == before
    assert [path.stat().st_mode & 0o777 for path in files] == [0o644, 0o600]


async def test_a_certificate_without_its_key_is_a_persons_task(files, pairs):
    files[0].write_text(pairs[0].certificate_pem)
    with pytest.raises(StartError, match="must be supplied as a pair"):
        await ensure_self_signed(*files, host="n1", key_worker=KeyWorker())


async def test_a_key_alone_is_what_a_crash_left_and_both_are_made_anew(files, pairs):
    files[1].write_text(pairs[0].key_pem)
    await ensure_self_signed(*files, host="n1", key_worker=KeyWorker())
    assert read_certificates(files[0].read_text())
    assert files[1].read_text() != pairs[0].key_pem


async def test_files_that_were_given_have_to_load(serving, files, pairs):
    with pytest.raises(StartError, match="there is no such file"):
        await serving.require()
    put(files, (pairs[0].certificate_pem, "nonsense"))
    with pytest.raises(StartError, match="--tls-cert-file"):
        await serving.require()
    put(files, pairs[0])
    await serving.require()
    assert serving.is_ready


async def test_whoever_listens_is_notified_of_a_new_context(serving, files, pairs):
    contexts = []
    serving.on_change = lambda: contexts.append(serving.context)
    for pair in pairs:
        put(files, pair)
        await serving.sync()
        await serving.sync()
    assert len(set(map(id, contexts))) == 2


async def test_another_client_ca_makes_another_context_and_the_same_one_does_not(files, pairs):
    authorities = ["first"]
    serving = ServingCertificate(*files, clock=FakeClock(), client_ca=lambda: authorities[-1])
    put(files, pairs[0])
    contexts = []
    for authority in ("first", "first", "second"):
        authorities.append(authority)
        await serving.sync()
        contexts.append(serving.context)
    assert contexts[0] is contexts[1]
    assert contexts[1] is not contexts[2]


def test_a_certificate_is_kept_where_that_is_possible(tmp_path, monkeypatch):
    assert can_store_pair(tmp_path / "var" / "pki")
    monkeypatch.setattr(module.os, "access", lambda *_: False)
    assert not can_store_pair(tmp_path / "var" / "pki")


async def test_elsewhere_it_lasts_for_this_start_and_its_key_is_on_no_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    descriptors = memory_file(), memory_file()
    files = tuple(map(path_of, descriptors))
    serving = ServingCertificate(*files, clock=FakeClock())
    await write_self_signed(*files, host="n1", key_worker=KeyWorker())
    await serving.sync()
    for descriptor in descriptors:
        os.close(descriptor)
    assert serving.is_ready
    assert list(tmp_path.iterdir()) == []
