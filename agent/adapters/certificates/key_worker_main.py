"""`python -m agent.adapters.certificates.key_worker_main`: makes keys, requests and certificates for the daemon.

It reads one order as JSON from stdin and writes one answer as JSON to stdout, so that no argument and no environment
holds key material. It is a process of its own because the cryptography package would cost the daemon 12 MiB for what it
needs a few times a year.
"""

import ipaddress
import json
import sys
import time
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Order = dict[str, Any]


def request(order: Order) -> Order:
    """Make a certificate request, for the key of the order or a new one."""
    key = _key(order["key"])
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(order))
    if names := _alternative_names(order["dns_names"], order["ip_addresses"]):
        builder = builder.add_extension(names, critical=False)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {
        "key": _pem(key),
        "csr": builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode(),
        "public_key": public.hex(),
        "is_rsa": isinstance(key, rsa.RSAPrivateKey),
    }


def fault(order: Order) -> Order:
    """Find out why a stored request does not belong to the key and subject of the order; empty if it does."""
    stored, key = x509.load_pem_x509_csr(order["csr"].encode()), _key(order["key"])
    if stored.subject != _subject(order):
        return {"fault": f"csr subjects differ: {stored.subject.rfc4514_string()}"}
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    is_same_key = stored.public_key().public_bytes(*form) == key.public_key().public_bytes(*form)
    try:
        is_signed = stored.is_signature_valid
    except InvalidSignature:
        is_signed = False
    return {"fault": "" if is_same_key and is_signed else "error validating signature new CSR against old key"}


def self_signed(order: Order) -> Order:
    """Make a serving certificate as kubelet does: a new authority signs it, whose key is thrown away."""
    host, now = order["host"], int(time.time())
    authority_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    authority = _builder(f"{host}-ca@{now}", f"{host}-ca@{now}", authority_key.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    authority = authority.add_extension(_key_usage(signs_certificates=True), critical=True)
    leaf = _builder(f"{host}@{now}", f"{host}-ca@{now}", key.public_key())
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    leaf = leaf.add_extension(_key_usage(signs_certificates=False), critical=True)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    names = _alternative_names([] if _is_ip(host) else [host], [host] if _is_ip(host) else [])
    if names:
        leaf = leaf.add_extension(names, critical=False)
    chain = [builder.sign(authority_key, hashes.SHA256()) for builder in (leaf, authority)]
    pem = "".join(certificate.public_bytes(serialization.Encoding.PEM).decode() for certificate in chain)
    return {"certificate": pem, "key": _pem(key)}


def _builder(name: str, issuer: str, public_key: rsa.RSAPublicKey) -> x509.CertificateBuilder:
    begin = datetime.now(UTC) - timedelta(hours=1)
    return x509.CertificateBuilder(
        subject_name=x509.Name([_common_name(name)]),
        issuer_name=x509.Name([_common_name(issuer)]),
        public_key=public_key,
        serial_number=x509.random_serial_number(),
        not_valid_before=begin,
        not_valid_after=begin + timedelta(days=365),
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key(pem: str) -> CertificateIssuerPrivateKeyTypes:
    """Load this key, or make a new one on P-256, as kubelet does."""
    if not pem:
        return ec.generate_private_key(ec.SECP256R1())
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise TypeError(f"a node cannot use a key of the kind {type(key).__name__}")
    return key


def _pem(key: CertificateIssuerPrivateKeyTypes) -> str:
    """Serialise a key as Go does: EC PRIVATE KEY or RSA PRIVATE KEY."""
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL)
    return key.private_bytes(*form, serialization.NoEncryption()).decode()


def _subject(order: Order) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in order["organizations"]]
    return x509.Name([*groups, _common_name(order["common_name"])])


def _common_name(name: str) -> x509.NameAttribute[str]:
    """Allow more than the 64 characters of RFC 5280, as Go does: a node name may have 253."""
    with warnings.catch_warnings(action="ignore"):
        return x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False)


def _alternative_names(dns_names: list[str], ips: list[str]) -> x509.SubjectAlternativeName | None:
    names = [x509.DNSName(name) for name in dns_names]
    addresses = [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips]
    return x509.SubjectAlternativeName([*names, *addresses]) if names or addresses else None


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    order = json.load(sys.stdin)
    try:
        answer = {"request": request, "fault": fault, "self_signed": self_signed}[order["order"]](order)
    except (ValueError, TypeError) as error:  # what is no key: one line, and no traceback that would show it
        answer = {"error": f"{type(error).__name__}: {error}"[:300]}
    json.dump(answer, sys.stdout)
