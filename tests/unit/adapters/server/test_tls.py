import ssl

import pytest

from agent.adapters.credentials import Credentials
from agent.adapters.server.tls import Tls
from tests.cluster.pairs import authority
from tests.settings import Serving

pytestmark = pytest.mark.anyio


def names(context):
    return {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}


@pytest.mark.parametrize(
    ("asked", "least"),
    [
        ("", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS10", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_the_oldest_version_is_1_2_or_the_one_that_is_asked_for(asked, least):
    assert Tls(Serving(tls_min_version=asked)).context().minimum_version == least


def test_cipher_suites_go_by_their_names_in_go():
    suites = (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        "TLS_AES_128_GCM_SHA256",
    )
    context = Tls(Serving(tls_cipher_suites=suites)).context()
    assert names(context) == {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_where_none_of_the_suites_is_for_1_2_only_1_3_is_spoken():
    context = Tls(Serving(tls_cipher_suites=("TLS_AES_128_GCM_SHA256",))).context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


def test_client_certificates_are_asked_for_where_there_is_a_client_ca(tmp_path):
    file = tmp_path / "ca.crt"
    file.write_text(authority().pem)
    assert Tls(Serving(client_ca_file=str(file))).context().verify_mode == ssl.CERT_OPTIONAL
    assert Tls(Serving()).context().verify_mode == ssl.CERT_NONE


def credentials(authority):
    return Credentials(source="/kubeconfig", server="https://api", tls=False, authority=authority)


async def test_the_ca_of_the_credentials_is_trusted_where_the_settings_say_so_and_replaced_with_them():
    tls, first, second = Tls(Serving(trusts_cluster_ca=True)), authority("first").pem, authority("second").pem
    await tls.use(credentials(first.encode()))
    assert (tls.client_ca(), tls.context().verify_mode) == (first, ssl.CERT_OPTIONAL)
    await tls.use(credentials("✅ two\n".encode() + (first + second).encode()))
    assert tls.client_ca().endswith(first + second)
    assert len(tls.context().get_ca_certs()) == 2


async def test_a_given_client_ca_or_the_wish_for_none_is_not_replaced_by_that_of_the_credentials(tmp_path):
    own = authority("given").pem
    (tmp_path / "ca.crt").write_text(own)
    given, none = Tls(Serving(client_ca_file=str(tmp_path / "ca.crt"))), Tls(Serving())
    for tls in (given, none):
        await tls.use(credentials(authority("of the cluster").pem.encode()))
    assert (given.client_ca(), none.client_ca()) == (own, "")


async def test_credentials_without_a_ca_let_nobody_in_and_the_log_says_so_once(caplog):
    tls = Tls(Serving(trusts_cluster_ca=True, anonymous=False))
    for _ in range(3):
        await tls.use(credentials(b""))
    assert tls.context().verify_mode == ssl.CERT_NONE
    assert ["kubectl logs fails" in record.message for record in caplog.records] == [True]


async def test_a_ca_of_the_credentials_that_cannot_be_read_ends_nothing(caplog):
    tls = Tls(Serving(trusts_cluster_ca=True))
    await tls.use(credentials(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"))
    assert tls.context().verify_mode == ssl.CERT_NONE
    assert [record.msg for record in caplog.records] == ["Unable to read the certificate-authority"]


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_a_client_ca_that_is_none_is_an_error(tmp_path, text):
    file = tmp_path / "ca.crt"
    file.write_text(text)
    with pytest.raises(ValueError, match="certificate"):
        Tls(Serving(client_ca_file=str(file))).context()
