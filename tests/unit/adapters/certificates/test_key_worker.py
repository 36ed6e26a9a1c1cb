import sys

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.adapters.certificates.key_worker import KeyWorker
from agent.core.csr import client_template, serving_template
from agent.core.x509 import read_certificates
from agent.ports import KeyPair, NotSigned, PreparedRequest

pytestmark = pytest.mark.anyio

RSA = rsa.generate_private_key(65537, 2048).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


async def test_a_request_has_a_new_key_on_p256_and_kubelets_subject():
    made = await KeyWorker().request(client_template("n1"))
    request = x509.load_pem_x509_csr(made.csr_pem.encode())
    assert request.is_signature_valid
    assert request.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    assert not list(request.extensions)
    key = serialization.load_pem_private_key(made.key_pem.encode(), None)
    assert isinstance(key.curve, ec.SECP256R1)
    assert made.key_pem.startswith("-----BEGIN EC PRIVATE KEY-----")
    assert not made.is_rsa


async def test_a_name_of_a_node_may_be_longer_than_a_common_name():
    name = "n" * 253
    made = await KeyWorker().request(client_template(name))
    with pytest.warns(UserWarning, match="<= 64"):
        subject = x509.load_pem_x509_csr(made.csr_pem.encode()).subject.rfc4514_string()
    assert f"CN=system:node:{name}" in subject


async def test_a_serving_request_has_names_and_addresses():
    addresses = [{"type": "InternalIP", "address": "2001:db8::1"}, {"type": "Hostname", "address": "n1"}]
    made = await KeyWorker().request(serving_template("n1", addresses))
    (extension,) = x509.load_pem_x509_csr(made.csr_pem.encode()).extensions
    assert [str(name.value) for name in extension.value] == ["n1", "2001:db8::1"]


async def test_a_key_is_used_again_and_known_again():
    first = await KeyWorker().request(client_template("n1"))
    second = await KeyWorker().request(client_template("n1"), first.key_pem)
    assert (second.key_pem, second.public_key) == (first.key_pem, first.public_key)
    assert await KeyWorker().fault(first.csr_pem, second.key_pem, client_template("n1")) == ""


async def test_a_request_with_another_key_or_subject_is_not_ours():
    ours, theirs = [await KeyWorker().request(client_template("n1")) for _ in range(2)]
    fault = await KeyWorker().fault(theirs.csr_pem, ours.key_pem, client_template("n1"))
    assert fault == "error validating signature new CSR against old key"
    fault = await KeyWorker().fault(ours.csr_pem, ours.key_pem, client_template("n2"))
    assert fault.startswith("csr subjects differ")


async def test_an_rsa_key_is_taken_and_told_as_one():
    assert (await KeyWorker().request(client_template("n1"), RSA.decode())).is_rsa


@pytest.mark.parametrize("key", ["nonsense", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"])
async def test_a_key_that_is_none_is_not_repeated_in_the_message(key):
    with pytest.raises(NotSigned, match="unable to make a key") as raised:
        await KeyWorker().request(client_template("n1"), key)
    assert "AAAA" not in str(raised.value)


async def test_a_child_that_cannot_start_is_a_failure_like_others(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/python")
    with pytest.raises(NotSigned, match=r"unable to make a key: .*No such file"):
        await KeyWorker().request(client_template("n1"))


@pytest.mark.parametrize(("host", "names"), [("n1", (("n1",), ())), ("192.0.2.1", ((), ("192.0.2.1",)))])
async def test_a_self_signed_pair_is_that_of_a_kubelet(host, names):
    pair = await KeyWorker().self_signed(host)
    leaf, authority = read_certificates(pair.certificate_pem)
    assert leaf.common_name.startswith(f"{host}@")
    assert authority.common_name.startswith(f"{host}-ca@")
    assert (leaf.dns_names, leaf.ip_addresses) == names
    assert (leaf.not_after - leaf.not_before).days == 365
    assert pair.key_pem.startswith("-----BEGIN RSA PRIVATE KEY-----")


async def test_keys_are_made_in_another_process():
    await KeyWorker().request(client_template("n1"))
    child = "agent.adapters.certificates.key_worker_main"
    assert child not in sys.modules


def test_a_key_is_not_told_with_its_certificate():
    assert repr(KeyPair("certificate", "key")) == "KeyPair('certificate', ...)"
    assert "key" not in repr(PreparedRequest("key", "csr", b"public", is_rsa=False))
