"""Certificates with their keys in `--cert-dir`, in kubelet's layout: dated files, and a link to the current one."""

import asyncio
import logging
import os
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from agent.adapters.certificates.files import sync_folder, write_whole
from agent.core.x509 import Certificate, private_key, read_certificates
from agent.ports import NotSigned, StartError

log = logging.getLogger(__name__)


class PemStore:
    """The pairs of one purpose: `kubelet-client` or `kubelet-server`."""

    def __init__(self, folder: Path, prefix: str, *, other: tuple[Path, Path] | None = None) -> None:
        self._folder = Path(os.path.abspath(folder))  # noqa: PTH100  links in it stay as they are
        self._prefix = prefix
        self._other = other  # a certificate and a key that somebody gave us

    @property
    def path(self) -> Path:
        """The link to the current pair."""
        return self._folder / f"{self._prefix}-current.pem"

    async def current(self) -> Certificate | None:
        """The pair in use, expired or not; None if there is none that loads, a StartError if nobody lets us look."""
        try:
            return await asyncio.to_thread(self._current)
        except OSError as error:
            raise StartError(
                f"unable to read the certificates in {self._folder}: {error.strerror}; --cert-dir names another place"
            ) from error

    async def update(self, certificate_pem: str, key_pem: str) -> Certificate:
        """Make a pair the current one."""
        try:
            return await asyncio.to_thread(self._update, certificate_pem, key_pem)
        except (OSError, ValueError) as error:
            raise NotSigned(f"unable to store the new cert/key pair: {error}") from error

    async def key(self) -> str:
        """The key of the current pair, to be used again; empty if there is none."""
        found = await asyncio.to_thread(self._found)
        return private_key(await asyncio.to_thread(found[1].read_text)) if found else ""

    def _current(self) -> Certificate | None:
        self._recover()
        found = self._found()
        return read_certificates(found[0].read_text())[0] if found else None

    def _recover(self) -> None:
        """Finish what a kubelet had begun: it takes the old link away before the new one is in its place."""
        updated = self.path.with_name(f"{self._prefix}-updated.pem")
        if updated.is_symlink() and not self.path.exists():
            updated.replace(self.path)

    def _found(self) -> tuple[Path, Path] | None:
        """Kubelet's order: the link, the files that were given, then a pair of plain files."""
        for certificate, key in self._candidates():
            if certificate.exists() and key.exists():
                fault = _fault(certificate, key)
                if not fault:
                    return certificate, key
                # A kubelet ends here. What is older may still be good, and if not, there is the bootstrap.
                log.error("Unable to use a cert/key pair", {"file": str(certificate), "err": fault})
        return None

    def _candidates(self) -> Iterator[tuple[Path, Path]]:
        yield self.path, self.path
        if self.path.is_symlink():  # broken: somebody cut off what it points to, and the one before may do
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
        updated.replace(self.path)  # in one step, so that there is no moment without a link
        sync_folder(self._folder)


def _fault(certificate: Path, key: Path) -> str:
    """Why a pair cannot be used; empty if it can."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, no_password)
        read_certificates(certificate.read_text())
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


def _check(pem: Path) -> None:
    if fault := _fault(pem, pem):
        raise ValueError(fault)


def no_password() -> bytes:
    """Say that a key cannot be used, instead of OpenSSL, which would ask on the terminal."""
    raise ValueError("the key is encrypted, and a daemon has nobody to ask for the password")
