import ssl

import pytest

from agent.adapters.server.tls import Tls
from tests.cluster.pairs import authority
from tests.settings import Serving


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


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_a_client_ca_that_is_none_is_an_error(tmp_path, text):
    file = tmp_path / "ca.crt"
    file.write_text(text)
    with pytest.raises(ValueError, match="certificate"):
        Tls(Serving(client_ca_file=str(file))).context()
