import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from agent.adapters.server.trust import Trust
from tests.cluster.pairs import authority, client_pair

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def signer():
    return authority()


class Server:
    """Tells whether it trusts the certificate that it was shown."""

    def __init__(self, folder, signer, trust):
        self.trust = trust
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*client_pair("server", signer).write(folder, "server"))
        trust.ask_for_certificates(self.context, signer.pem)

    async def told(self, folder, pair=None, version=None):
        """`trusted`, `untrusted`, `none`, or `failed` for a handshake that ended."""
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        if version:
            client.maximum_version = version
        if pair:
            client.load_cert_chain(*pair.write(folder, "client"))
        server = await asyncio.start_server(self._tell, "127.0.0.1", 0, ssl=self.context)
        try:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=client)
            said = await reader.read()
            writer.close()
        except OSError:
            return "failed"
        finally:
            server.close()
        return said.decode() or "failed"

    async def _tell(self, _, writer):
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        word = "none" if not der else "trusted" if self.trust.is_trusted(der) else "untrusted"
        writer.write(word.encode())
        writer.close()


def past(signer):
    now = datetime.now(UTC)
    return client_pair("late", signer, begin=now - timedelta(days=2), end=now - timedelta(days=1))


CASES = {
    "no certificate": (lambda _: None, "none"),
    "of our authority": (lambda ours: client_pair("jane", ours), "trusted"),
    "of another authority": (lambda _: client_pair("jane", authority("other")), "untrusted"),
    "of another authority of the same name": (lambda _: client_pair("jane", authority("ca")), "untrusted"),
    "signed by itself": (lambda _: client_pair("jane"), "untrusted"),
    "expired": (past, "untrusted"),
    "of a server": (lambda ours: client_pair("web", ours, usage=ExtendedKeyUsageOID.SERVER_AUTH), "untrusted"),
}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize(("made", "told"), CASES.values(), ids=CASES)
async def test_every_handshake_succeeds_and_only_our_authoritys_certificates_are_trusted(
    made, told, version, signer, tmp_path
):
    server = Server(tmp_path, signer, Trust())
    assert await server.told(tmp_path, made(signer), version) == told


@pytest.mark.parametrize(("made", "told"), CASES.values(), ids=CASES)
async def test_where_openssl_is_out_of_reach_the_untrusted_fail_in_the_handshake(made, told, signer, tmp_path):
    server = Server(tmp_path, signer, Trust(library=lambda: None))
    assert await server.told(tmp_path, made(signer)) == ("failed" if told == "untrusted" else told)


async def test_an_authority_that_is_replaced_is_no_longer_trusted(signer, tmp_path):
    trust, pair = Trust(), client_pair("jane", signer)
    server = Server(tmp_path, signer, trust)
    assert await server.told(tmp_path, pair) == "trusted"
    other = Server(tmp_path, authority("new"), trust)
    assert not trust.is_trusted(pair.der)
    assert await other.told(tmp_path, pair) == "untrusted"


async def test_an_intermediate_in_the_bundle_is_a_root_as_in_go(signer, tmp_path):
    between = authority("between", signer)
    server = Server(tmp_path, signer, Trust())
    server.trust.ask_for_certificates(server.context, between.pem)
    assert await server.told(tmp_path, client_pair("jane", between)) == "trusted"
