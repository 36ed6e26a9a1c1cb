import base64
import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from agent.core.x509 import private_key, read_certificates
from tests.cluster.pairs import client_pair
from tests.unit.core.certificates import BEGIN, EC_KEY, RSA_KEY, made, spki


@pytest.mark.parametrize("key", [EC_KEY, RSA_KEY], ids=["EC", "RSA"])
def test_subject_life_and_key_are_read(key):
    (found,) = read_certificates(made(key=key, organizations=["system:nodes", "more"]))
    assert (found.common_name, found.organizations) == ("system:node:n1", ("system:nodes", "more"))
    assert (found.not_before, found.not_after) == (BEGIN, BEGIN + timedelta(days=365))
    assert found.public_key == spki(key)


def test_alternative_names_are_read():
    names = [
        x509.DNSName("n1.example"),
        x509.IPAddress(ipaddress.ip_address("192.0.2.1")),
        x509.IPAddress(ipaddress.ip_address("2001:db8::1")),
        x509.DNSName("other"),
        x509.UniformResourceIdentifier("urn:x"),
    ]
    (found,) = read_certificates(made(names=names))
    assert found.dns_names == ("n1.example", "other")
    assert found.ip_addresses == ("192.0.2.1", "2001:db8::1")


@pytest.mark.parametrize("year", [1950, 1999, 2049, 2050, 2999], ids=str)
def test_both_ways_to_write_a_year_are_understood(year):
    begin, end = datetime(1950, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert read_certificates(made(begin=begin, end=end))[0].not_after == end


def test_a_name_without_a_common_name_is_empty():
    assert read_certificates(made(common_name="", organizations=["o"]))[0].common_name == ""


def test_a_chain_is_read_in_its_order_and_the_key_beside_it_is_none():
    key = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    found = read_certificates(made(common_name="leaf") + made(common_name="authority") + key)
    assert [certificate.common_name for certificate in found] == ["leaf", "authority"]


@pytest.mark.parametrize("text", ["", "words", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"])
def test_a_text_without_certificates_is_refused(text):
    with pytest.raises(ValueError, match="certificate"):
        read_certificates(text)


@given(st.integers(0, 2000), st.binary(max_size=3))
def test_a_broken_certificate_raises_nothing_but_a_value_error(position, junk):
    der = bytearray(base64.b64decode("".join(made().splitlines()[1:-1])))
    der[position : position + len(junk)] = junk
    body = base64.b64encode(bytes(der[: position + 50] if position % 2 else der)).decode()
    try:
        read_certificates(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
    except ValueError:
        return


@pytest.mark.parametrize("names", [b"", b"\x30", b"\x30\x03\x82\x01\xff", b"\x30\x02\x87\x00"], ids=bytes.hex)
def test_alternative_names_that_make_no_sense_are_a_value_error(names):
    with pytest.raises(ValueError, match="makes no sense"):
        read_certificates(client_pair("jane", alternative_names=names).pem)


@pytest.mark.parametrize("kind", ["EC ", "RSA ", ""], ids=["EC", "RSA", "PKCS8"])
def test_the_private_key_is_found_beside_certificates(kind):
    key = f"-----BEGIN {kind}PRIVATE KEY-----\nQUJD\n-----END {kind}PRIVATE KEY-----\n"
    assert private_key(made() + key + made()) == key
    assert private_key(made()) == ""
