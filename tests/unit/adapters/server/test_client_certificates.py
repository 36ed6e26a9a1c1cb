import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from agent.adapters.server.tls import Tls, verified_chain
from tests.cluster.pairs import authority, client_pair
from tests.settings import Serving

pytestmark = pytest.mark.anyio

VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])


@pytest.fixture(scope="module")
def signer():
    return authority()


class Server:
    """Says how many certificates stand behind the client: 0 if it has shown none, -1 for a handshake that failed."""

    def __init__(self, folder, signer):
        self.folder = folder
        (folder / "ca.crt").write_text(signer.pem)
        self.context = Tls(Serving(client_ca_file=str(folder / "ca.crt"))).context()
        self.context.load_cert_chain(*client_pair("server", signer).write(folder, "server"))

    def client(self, pair=None, *signers, version=None):
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        if version:
            client.maximum_version = version
        if pair:
            client.load_cert_chain(*pair.write(self.folder, "client", *signers))
        return client

    async def told(self, pair=None, *signers, version=None):
        return await self.answer(self.client(pair, *signers, version=version))

    async def answer(self, client):
        server = await asyncio.start_server(self._tell, "127.0.0.1", 0, ssl=self.context)
        try:
            async with asyncio.timeout(60):
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=client)
                said = await reader.read()
            writer.close()
        except OSError:
            return -1
        finally:
            server.close()
        return int(said or "-1")

    async def _tell(self, _, writer):
        writer.write(str(len(verified_chain(writer.get_extra_info("ssl_object")))).encode())
        writer.close()


@pytest.fixture
def server(tmp_path, signer):
    return Server(tmp_path, signer)


def past(signer):
    now = datetime.now(UTC)
    return client_pair("late", signer, begin=now - timedelta(days=2), end=now - timedelta(days=1))


CASES = {
    "no certificate": (lambda _: None, 0),
    "of our authority": (lambda ours: client_pair("jane", ours), 2),
    "of another authority": (lambda _: client_pair("jane", authority("other")), -1),
    "of another authority of the same name": (lambda _: client_pair("jane", authority("ca")), -1),
    "signed by itself": (lambda _: client_pair("jane"), -1),
    "expired": (past, -1),
    "of a server": (lambda ours: client_pair("web", ours, usage=ExtendedKeyUsageOID.SERVER_AUTH), -1),
    "signed by a client": (lambda ours: client_pair("jane", client_pair("bob", ours)), -1),
}


@VERSIONS
@pytest.mark.parametrize(("made", "length"), CASES.values(), ids=CASES)
async def test_a_handshake_succeeds_without_a_certificate_and_with_one_that_verifies(
    made, length, version, server, signer
):
    assert await server.told(made(signer), version=version) == length


async def test_an_authority_that_is_replaced_is_no_longer_trusted(server, signer, tmp_path):
    pair = client_pair("jane", signer)
    assert await server.told(pair) == 2
    assert await Server(tmp_path, authority("new")).told(pair) == -1


async def test_an_intermediate_in_the_bundle_is_a_root_as_in_go(signer, tmp_path):
    between = authority("between", signer)
    assert await Server(tmp_path, between).told(client_pair("jane", between)) == 2


@VERSIONS
async def test_a_certificate_that_verified_once_is_verified_again(version, server, signer):
    between = authority("between", signer)
    expired = authority("between", signer, end=datetime.now(UTC) - timedelta(minutes=1), like=between)
    pair = client_pair("jane", between)
    assert await server.told(pair, between, version=version) == 3
    assert await server.told(pair, version=version) == -1
    assert await server.told(pair, expired, version=version) == -1


async def test_a_session_with_a_certificate_is_not_resumed(server, signer):
    """Only TLS 1.2 has sessions that a server cannot be told not to keep; asyncio's client cannot resume them."""
    client = server.client(client_pair("jane", signer), version=ssl.TLSVersion.TLSv1_2)
    first, _ = shake_hands(server.context, client)
    with pytest.raises(ssl.SSLError, match="cannot be resumed"):
        shake_hands(server.context, client, first.session)
    shake_hands(server.context, client)


async def test_a_session_without_one_may_be(server):
    client = server.client(version=ssl.TLSVersion.TLSv1_2)
    first, _ = shake_hands(server.context, client)
    assert verified_chain(shake_hands(server.context, client, first.session)[1]) == ()


def shake_hands(server, client, session=None):
    """Both ends of a handshake in memory."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(one, other, session=session),
        server.wrap_bio(other, one, server_side=True),
    )
    done = set()
    while len(done) < 2:
        for end in ends:
            try:
                end.do_handshake()
                done.add(end)
            except ssl.SSLWantReadError:
                pass
    return ends
