"""Certificates with their keys in `--cert-dir`, in kubelet's layout: dated files, and a link to the current one."""

import asyncio
import logging
import os
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from agent.adapters.certificates.files import sync_folder, write_whole
from agent.adapters.tls import no_password
from agent.core.x509 import Certificate, private_key, read_certificates
from agent.ports import NotSigned, StartError

log = logging.getLogger(__name__)

Prefix = Literal["kubelet-client", "kubelet-server"]


class PemStore:
    """Stores certificates with their keys under one prefix: dated files, and a link to the current one."""

    def __init__(self, folder: Path, prefix: Prefix, *, other: tuple[Path, Path] | None = None) -> None:
        self._folder = Path(os.path.abspath(folder))  # noqa: PTH100  links in it stay as they are
        self._prefix = prefix
        self._other = other  # a certificate and a key that the settings name

    @property
    def path(self) -> Path:
        """The link to the current certificate and key."""
        return self._folder / f"{self._prefix}-current.pem"

    async def current(self) -> Certificate | None:
        """Return the certificate in use, expired or not; None if none loads. Raises StartError if it cannot look."""
        try:
            return await asyncio.to_thread(self._current)
        except OSError as error:
            raise StartError(
                f"unable to read the certificates in {self._folder}: {error.strerror}; --cert-dir names another place"
            ) from error

    async def update(self, certificate_pem: str, key_pem: str) -> Certificate:
        """Store a pair and make it the current one. Raises NotSigned if that fails."""
        try:
            return await asyncio.to_thread(self._update, certificate_pem, key_pem)
        except (OSError, ValueError) as error:
            raise NotSigned(f"unable to store the new cert/key pair: {error}") from error

    async def key(self) -> str:
        """Return the key of the current pair; empty if there is none."""
        pair = await asyncio.to_thread(self._usable_pair)
        return private_key(await asyncio.to_thread(pair[1].read_text)) if pair else ""

    def _current(self) -> Certificate | None:
        self._recover()
        pair = self._usable_pair()
        return read_certificates(pair[0].read_text())[0] if pair else None

    def _recover(self) -> None:
        """Finish the update of a kubelet that crashed: it removes the old link before it renames the new one."""
        updated = self.path.with_name(f"{self._prefix}-updated.pem")
        if updated.is_symlink() and not self.path.exists():
            updated.replace(self.path)

    def _usable_pair(self) -> tuple[Path, Path] | None:
        """Return the first pair that loads, in kubelet's order: the link, the files of the settings, plain files."""
        for certificate, key in self._candidates():
            if certificate.exists() and key.exists():
                fault = _fault(certificate, key)
                if not fault:
                    return certificate, key
                # A kubelet exits here. An older pair may still be valid, and if not, there is the bootstrap.
                log.error("Unable to use a cert/key pair", {"file": str(certificate), "err": fault})
        return None

    def _candidates(self) -> Iterator[tuple[Path, Path]]:
        yield self.path, self.path
        if self.path.is_symlink():  # its target is broken, but an older file may load
            dated = (path for path in self._folder.glob(f"{self._prefix}-[0-9]*.pem"))
            yield from ((path, path) for path in sorted(dated, reverse=True))
        if self._other:
            yield self._other
        yield self._folder / f"{self._prefix}.crt", self._folder / f"{self._prefix}.key"

    def _update(self, certificate_pem: str, key_pem: str) -> Certificate:
        certificates = read_certificates(certificate_pem)
        if self.path.exists() and not self.path.is_symlink():
            raise NotSigned(f'expected "{self.path}" to be a symlink but it is a file')
        dated = self._folder / f"{self._prefix}-{datetime.now().astimezone():%Y-%m-%d-%H-%M-%S}.pem"
        draft = self._folder / f".{self._prefix}.draft"
        write_whole(dated, certificate_pem.strip() + "\n" + key_pem, draft=draft, check=_check)
        self._point_to(dated)
        return certificates[0]

    def _point_to(self, dated: Path) -> None:
        updated = self.path.with_name(f"{self._prefix}-updated.pem")
        if updated.is_symlink():
            updated.unlink()
        updated.symlink_to(dated)
        updated.replace(self.path)  # one step: there is no moment without a link
        sync_folder(self._folder)


def _fault(certificate: Path, key: Path) -> str:
    """Return why a pair does not load; empty if it does."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, no_password)
        read_certificates(certificate.read_text())
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


def _check(pem: Path) -> None:
    if fault := _fault(pem, pem):
        raise ValueError(fault)
