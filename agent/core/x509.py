"""Reads X.509 certificates from DER, without the memory that a cryptography package takes."""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END CERTIFICATE-----")
_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----\n?", re.DOTALL)
_COMMON_NAME, _ORGANIZATION, _ALTERNATIVE_NAMES = b"\x55\x04\x03", b"\x55\x04\x0a", b"\x55\x1d\x11"
_UTC_TIME = 0x17
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_DNS_NAME, _IP_ADDRESS = 0x82, 0x87


@dataclass(frozen=True, slots=True)
class Certificate:
    """The fields of a certificate that are read here."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    ip_addresses: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    public_key: bytes  # SubjectPublicKeyInfo, as kubeadm's hashes want it

    def is_over(self, now: datetime) -> bool:
        """Return whether it has expired."""
        return now > self.not_after


def read_certificates(pem: str) -> tuple[Certificate, ...]:
    """Return all certificates of a PEM text, in their order; raise ValueError if there is none, or one is broken."""
    certificates = tuple(read_certificate(der) for der in _ders(pem))
    if not certificates:
        raise ValueError("there is no certificate in it")
    return certificates


def private_key(pem: str) -> str:
    """Return the first private key of a PEM text; empty if there is none."""
    match = _KEY.search(pem)
    return match.group() if match else ""


class _Item(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def _ders(pem: str) -> Iterator[bytes]:
    for text in _PEM.findall(pem):
        try:
            yield base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"a certificate is no base64: {error}") from error


def _items(data: bytes) -> Iterator[_Item]:
    """Yield the DER values that follow one another."""
    position = 0
    while position < len(data):
        start, length, position = position, data[position + 1], position + 2
        if length & 0x80:
            digits = length & 0x7F
            length, position = int.from_bytes(data[position : position + digits]), position + digits
        if position + length > len(data):
            raise ValueError("a certificate is cut off")
        yield _Item(data[start], data[position : position + length], data[start : position + length])
        position += length


def _first(data: bytes) -> _Item:
    for item in _items(data):
        return item
    raise ValueError("a part of it is empty")


def read_certificate(der: bytes) -> Certificate:
    """Read one certificate; raise ValueError if it is broken."""
    try:
        (outer,) = _items(der)
        fields = [item for item in _items(_first(outer.content).content) if item.tag != _VERSION]
        # RFC 5280: serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo, then what is optional
        _, _, _, validity, subject, public_key, *rest = fields
        not_before, not_after = (_time(item) for item in _items(validity.content))
        names = list(_alternative_names(rest))
        common = list(_attributes(subject, _COMMON_NAME))
        return Certificate(
            common_name=common[-1] if common else "",
            organizations=tuple(_attributes(subject, _ORGANIZATION)),
            dns_names=tuple(item.content.decode("ascii") for item in names if item.tag == _DNS_NAME),
            ip_addresses=tuple(str(ip_address(item.content)) for item in names if item.tag == _IP_ADDRESS),
            not_before=not_before,
            not_after=not_after,
            public_key=public_key.whole,
        )
    except (IndexError, ValueError) as error:
        raise ValueError(f"a certificate makes no sense: {error}") from error


def _attributes(name: _Item, object_id: bytes) -> Iterator[str]:
    for group in _items(name.content):
        for attribute in _items(group.content):
            kind, value = _items(attribute.content)
            if kind.content == object_id:
                yield value.content.decode("utf-8")


def _alternative_names(rest: list[_Item]) -> Iterator[_Item]:
    for extensions in (item for item in rest if item.tag == _EXTENSIONS):
        for extension in _items(_first(extensions.content).content):
            parts = list(_items(extension.content))
            if parts[0].content == _ALTERNATIVE_NAMES:
                yield from _items(_first(parts[-1].content).content)


def _time(item: _Item) -> datetime:
    text = item.content.decode("ascii")
    if item.tag == _UTC_TIME:  # RFC 5280: two digits of a year between 1950 and 2049
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
