"""Certificates for tests: authorities, and what they sign."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Self, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

_PEM = serialization.Encoding.PEM


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Self:
        found = serialization.load_pem_private_key(key.read_bytes(), None)
        return cls(
            x509.load_pem_x509_certificate(certificate.read_bytes()), cast(CertificateIssuerPrivateKeyTypes, found)
        )

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(_PEM).decode()

    def write(self, folder: Path, name: str, *signers: "Pair") -> tuple[Path, Path]:
        """Certificate and key as files; the signers are shown with the certificate."""
        files = folder / f"{name}.crt", folder / f"{name}.key"
        files[0].write_text("".join(pair.pem for pair in (self, *signers)))
        form = (_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        files[1].write_bytes(self.key.private_bytes(*form))
        return files


def authority(
    name: str = "ca",
    by: Pair | None = None,
    *,
    begin: datetime | None = None,
    end: datetime | None = None,
    like: Pair | None = None,
) -> Pair:
    """Somebody who signs; with the key of another one, if that is given."""
    life = {"begin": begin or _ago(), "end": end or _later()}
    return _signed(_subject(name), by, is_authority=True, usage=None, key=like.key if like else None, **life)


def client_pair(
    name: str,
    by: Pair | None = None,
    *,
    organization: str = "",
    begin: datetime | None = None,
    end: datetime | None = None,
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    alternative_names: bytes | None = None,
) -> Pair:
    """What somebody shows to a server; its alternative names are DER, good or not."""
    subject, names = _subject(name, organization), alternative_names
    life = {"begin": begin or _ago(), "end": end or _later()}
    return _signed(subject, by, is_authority=False, usage=usage, alternative_names=names, **life)


def _subject(name: str, organization: str = "") -> x509.Name:
    named = {NameOID.ORGANIZATION_NAME: organization, NameOID.COMMON_NAME: name}
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in named.items() if text])


def _signed(
    subject: x509.Name,
    by: Pair | None,
    *,
    is_authority: bool,
    usage: x509.ObjectIdentifier | None,
    begin: datetime,
    end: datetime,
    alternative_names: bytes | None = None,
    key: CertificateIssuerPrivateKeyTypes | None = None,
) -> Pair:
    key = key or ec.generate_private_key(ec.SECP256R1())
    issuer = by.certificate.subject if by else subject
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), begin, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    if usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    if alternative_names is not None:
        names = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, alternative_names)
        builder = builder.add_extension(names, critical=False)
    return Pair(builder.sign(by.key if by else key, hashes.SHA256()), key)


def _ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


def _later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)
