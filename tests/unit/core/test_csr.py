import base64
from datetime import UTC, datetime, timedelta

import pytest

from agent.core.csr import (
    CLIENT_SIGNER,
    SERVING_SIGNER,
    Refused,
    Template,
    client_template,
    decoded_request,
    digested_name,
    issued,
    mismatch,
    overdue,
    rotation_deadline,
    satisfies,
    serving_template,
    signing_request,
    usages,
)
from agent.core.x509 import Certificate
from tests.unit.core.certificates import EC_KEY, RSA_KEY, made, spki

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def certificate(**changes):
    given = {
        "common_name": "system:node:n1",
        "organizations": ("system:nodes",),
        "dns_names": ("n1",),
        "ip_addresses": ("192.0.2.1",),
        "not_before": BEGIN,
        "not_after": BEGIN + timedelta(days=100),
        "public_key": b"",
    }
    return Certificate(**(given | changes))


def request(*conditions, **status):
    told = [{"type": kind, "reason": "R", "message": "m"} for kind in conditions]
    return {"metadata": {"name": "csr-1", "uid": "u"}, "status": {"conditions": told, **status}}


def test_the_name_of_a_request_hangs_on_key_subject_and_usages_alone():
    client, purposes = client_template("n1"), usages(CLIENT_SIGNER, is_rsa=False)
    name = digested_name(b"key", client, purposes)
    assert name == digested_name(b"key", client_template("n1"), usages(CLIENT_SIGNER, is_rsa=False))
    others = {
        digested_name(b"other key", client, purposes),
        digested_name(b"key", client_template("n2"), purposes),
        digested_name(b"key", client, usages(CLIENT_SIGNER, is_rsa=True)),
    }
    assert len({name, *others}) == 4


def test_words_that_read_alike_when_joined_lead_to_other_names():
    together, apart = (Template(CLIENT_SIGNER, "n", organizations=words) for words in (("abcdef",), ("abc", "def")))
    assert digested_name(b"key", together, []) != digested_name(b"key", apart, [])


def test_usages_are_exactly_those_that_the_approver_accepts():
    assert usages(CLIENT_SIGNER, is_rsa=False) == ["digital signature", "client auth"]
    assert usages(CLIENT_SIGNER, is_rsa=True) == ["digital signature", "client auth", "key encipherment"]
    assert usages(SERVING_SIGNER, is_rsa=False) == ["digital signature", "server auth"]


def test_a_request_without_a_name_is_named_by_the_server():
    asked = signing_request("pem", client_template("n1"), ["client auth"])
    assert asked["metadata"] == {"generateName": "csr-"}
    assert base64.b64decode(asked["spec"]["request"]) == b"pem"
    assert signing_request("pem", client_template("n1"), [], name="x")["metadata"] == {"name": "x"}


def test_addresses_become_names_sorted_and_without_doubles():
    addresses = [
        {"type": "InternalIP", "address": "192.0.2.9"},
        {"type": "ExternalIP", "address": "192.0.2.10"},
        {"type": "InternalIP", "address": "2001:DB8::1"},
        {"type": "Hostname", "address": "n1"},
        {"type": "InternalDNS", "address": "a.example"},
        {"type": "ExternalDNS", "address": "n1"},
        {"type": "ExternalDNS", "address": ""},
    ]
    template = serving_template("n1", addresses)
    assert template.dns_names == ("a.example", "n1")
    assert template.ip_addresses == ("192.0.2.10", "192.0.2.9", "2001:db8::1")


@pytest.mark.parametrize(
    "text",
    [
        "not-an-ip",
        "",
        "\0",
        "192.0.2.7\n",
        "192.0.2.7 ",
        "192.0.2.256",
        "192.0.2",
        "192.0.2.7/24",
        "fe80::1%eth0",
        "::1::",
        "\u0661\u0669\u0662.0.2.7",
        "1" * 100_000,
        ":" * 100_000,
    ],
    ids=lambda text: repr(text[:20]),
)
@pytest.mark.parametrize("kind", ["InternalIP", "ExternalIP"])
def test_an_address_that_is_no_ip_is_left_out(kind, text):
    addresses = [{"type": kind, "address": text}, {"type": "InternalIP", "address": "192.0.2.1"}]
    template = serving_template("n1", addresses)
    assert (template.ip_addresses, template.dns_names) == (("192.0.2.1",), ())


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("010.0.0.1", "10.0.0.1"),
        ("000.0.0.1", "0.0.0.1"),
        ("::ffff:192.0.2.9", "192.0.2.9"),
        ("2001:DB8::1", "2001:db8::1"),
    ],
)
def test_an_address_is_read_as_go_reads_it(text, read):
    assert serving_template("n1", [{"type": "InternalIP", "address": text}]).ip_addresses == (read,)


@pytest.mark.parametrize("text", ["", "\0", "a\nb", "a b", "b\u00fccher.example", "x" * 254, "\ud800"], ids=ascii)
@pytest.mark.parametrize("kind", ["Hostname", "InternalDNS", "ExternalDNS"])
def test_a_name_that_no_certificate_can_have_is_left_out(kind, text):
    addresses = [{"type": kind, "address": text}, {"type": "InternalIP", "address": "192.0.2.1"}]
    assert serving_template("n1", addresses).dns_names == ()


def test_an_address_of_a_kind_that_nobody_knows_is_left_out():
    known = {"type": "InternalIP", "address": "192.0.2.1"}
    odd = [{}, {"type": "Hostname"}, {"address": "x"}, {"type": "Other", "address": "x"}, {"type": "", "address": ""}]
    template = serving_template("n1", [*odd, known])
    assert (template.ip_addresses, template.dns_names) == (("192.0.2.1",), ())


def test_a_request_has_room_for_a_thousand_addresses():
    addresses = [{"type": "InternalDNS", "address": f"{index}.example"} for index in range(100_000)]
    addresses.insert(0, {"type": "InternalIP", "address": "192.0.2.1"})
    assert len(serving_template("n1", addresses).dns_names) == 999


def test_a_hostname_that_is_an_address_counts_as_one():
    assert serving_template("n1", [{"type": "Hostname", "address": "192.0.2.1"}]).ip_addresses == ("192.0.2.1",)


def test_without_an_ip_address_no_serving_certificate_is_asked_for():
    assert serving_template("n1", [{"type": "Hostname", "address": "n1"}]) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"common_name": "system:node:n2"},
        {"organizations": ()},
        {"dns_names": ("other",)},
        {"ip_addresses": ()},
    ],
    ids=["another node", "no group", "a name is missing", "an address is missing"],
)
def test_a_certificate_that_lacks_something_does_not_do(changes):
    wanted = serving_template(
        "n1", [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "n1"}]
    )
    assert satisfies(certificate(), wanted)
    assert satisfies(certificate(dns_names=("n1", "more")), wanted)
    assert not satisfies(certificate(**changes), wanted)


@pytest.mark.parametrize(("rand", "days"), [(0.0, 70), (0.5, 80), (0.999999, 90)])
def test_the_next_one_is_asked_for_after_70_to_90_percent_of_a_life(rand, days):
    assert (rotation_deadline(certificate(), rand) - BEGIN) / timedelta(days=1) == pytest.approx(days, abs=0.01)


def test_a_certificate_is_taken_only_when_it_is_approved_and_there():
    pem = base64.b64encode(b"pem").decode()
    assert issued(request(), "u") is None
    assert issued(request("Approved"), "u") is None
    assert issued(request(certificate=pem), "u") is None
    assert issued(request("Approved", certificate=pem), "u") == "pem"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (request("Denied"), "certificate signing request is denied, reason: R, message: m"),
        (request("Approved", "Failed"), "certificate signing request failed, reason: R, message: m"),
        (request() | {"metadata": {"name": "csr-1", "uid": "v"}}, 'csr "csr-1" changed UIDs'),
    ],
    ids=["denied", "failed", "another request of this name"],
)
def test_a_request_that_nothing_will_come_of_is_refused_in_kubelets_words(found, message):
    with pytest.raises(Refused, match=f"^{message}$"):
        issued(found, "u")


@pytest.mark.parametrize(
    "encoded", ["!", "A", "====", "\u00e9", "AAAA", "/w==", "x" * 10_000_000], ids=lambda text: text[:5]
)
def test_what_is_no_base64_is_no_certificate(encoded):
    found = request("Approved", certificate=encoded)
    assert mismatch(issued(found, "u"), client_template("n1"), b"").strip()
    assert overdue(found, BEGIN) == ""
    assert isinstance(decoded_request({"spec": {"request": encoded}}), str)


def test_a_certificate_for_another_key_or_name_is_not_the_one_that_was_asked_for():
    template, nodes = client_template("n1"), ["system:nodes"]
    assert mismatch(made(organizations=nodes), template, spki(EC_KEY)) == ""
    assert mismatch(made(organizations=nodes), template, spki(RSA_KEY)) == "the signed certificate is for another key"
    for odd in (
        made(),
        made(organizations=nodes, common_name="system:node:n2"),
        made(organizations=["system:masters"]),
    ):
        assert "lacks some of what was asked for" in mismatch(odd, template, spki(EC_KEY))


GOOD, OVER = made(begin=BEGIN, end=BEGIN + timedelta(days=2)), made(begin=BEGIN, end=BEGIN + timedelta(hours=1))


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        ("", ""),
        (GOOD, ""),
        (OVER, "one of the certificates for the CSR has expired: 2026-01-01 01:00:00+00:00"),
        (GOOD + OVER, "one of the certificates for the CSR has expired: 2026-01-01 01:00:00+00:00"),
        ("nonsense", ""),
    ],
    ids=["none yet", "good", "expired", "expired in the chain", "no certificate"],
)
def test_what_an_old_request_has_brought_may_be_of_no_use_by_now(pem, message):
    found = request("Approved", certificate=base64.b64encode(pem.encode()).decode())
    assert overdue(found, BEGIN + timedelta(days=1)) == message
