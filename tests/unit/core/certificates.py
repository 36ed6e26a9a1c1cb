"""Certificates as a test needs them."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(65537, 2048)


def made(*, key=EC_KEY, common_name="system:node:n1", organizations=(), names=(), begin=BEGIN, end=None):
    """A certificate as PEM, and the DER of its public key."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    if common_name:
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    builder = x509.CertificateBuilder(
        subject_name=x509.Name(parts),
        issuer_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the issuer")]),
        public_key=key.public_key(),
        serial_number=2**100,
        not_valid_before=begin,
        not_valid_after=end or begin + timedelta(days=365),
    ).add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def spki(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def encrypted(key_pem):
    """The same key, with a password."""
    key = serialization.load_pem_private_key(key_pem.encode(), None)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL)
    return key.private_bytes(*form, serialization.BestAvailableEncryption(b"x")).decode()
