"""The certificate that a node serves with: its files, the TLS context that is made of them, and self-signed pairs."""

import asyncio
import hashlib
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

from agent.adapters.certificates.files import write_whole
from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.tls import no_password
from agent.core.x509 import read_certificates
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

_POLL_SECONDS = 10.0
_MOST_SESSIONS = 1024  # of TLS 1.2, which OpenSSL would keep 20,480 of, for two hours


def plain_context() -> ssl.SSLContext:
    """Return a TLS context with the defaults of Go's servers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class ServingCertificate:
    """Holds the TLS context of a server, and replaces it whenever its files or the client CA change.

    Until there is a certificate, handshakes fail, as with a kubelet that waits for one. Open connections keep the
    context with which they began.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        clock: Clock,
        new_context: Callable[[], ssl.SSLContext] = plain_context,
        client_ca: Callable[[], str] = str,  # none
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._new_context = new_context
        self._client_ca = client_ca  # PEM: what `new_context` reads, too
        self._digest = b""
        self._error = ""
        self.context = plain_context()
        self.reload_requested = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_ready(self) -> bool:
        """Whether a handshake can succeed."""
        return bool(self._digest)

    async def run(self) -> None:
        """Look at the files every ten seconds, and at once when `reload_requested` is set, until cancelled."""
        while True:
            await self.sync()
            await self._clock.wait(self.reload_requested, _POLL_SECONDS)
            self.reload_requested.clear()

    async def require(self) -> None:
        """Load the files now. Raises StartError if they do not load."""
        await self.sync()
        if not self.is_ready:
            raise StartError(
                f"unable to load the serving certificate {self._certificate} and its key {self._key}: "
                f"{self._error or 'there is no such file'}; check --tls-cert-file and --tls-private-key-file"
            )

    async def sync(self) -> None:
        """Load the files if they have changed; files that do not load change nothing."""
        if context := await asyncio.to_thread(self._load):
            self.context = context
            self.on_change()

    def _load(self) -> ssl.SSLContext | None:
        try:
            texts = [path.read_text("utf-8") for path in (self._certificate, self._key)]
            digest = hashlib.sha256("".join((*texts, self._client_ca())).encode()).digest()
            if digest == self._digest and self.context.session_stats()["number"] <= _MOST_SESSIONS:
                return None
            read_certificates(texts[0])
            context = self._new_context()
            context.load_cert_chain(self._certificate, self._key, no_password)
        except FileNotFoundError:
            return None  # it has not been signed yet, or is being replaced
        except (OSError, ValueError) as error:
            if str(error) != self._error:  # logged once, not every ten seconds
                self._error = str(error)
                fields = {"err": self._error, "certFile": str(self._certificate)}
                log.error("invalid certificate and key pair from file", fields)
            return None
        self._digest = digest
        self._error = ""
        log.info("Loaded serving certificate", {"certFile": str(self._certificate)})
        return context


def can_store_pair(folder: Path) -> bool:
    """Whether a folder has a self-signed pair already, or one can be written there."""
    nearest = next(place for place in (folder, *folder.parents) if os.path.isdir(place))  # noqa: PTH112  never raises
    return os.access(folder / "kubelet.key", os.R_OK) or os.access(nearest, os.W_OK | os.X_OK)


async def write_self_signed(certificate: Path, key: Path, *, host: str, key_worker: KeyWorker) -> None:
    """Make a self-signed pair for this process only, in files of `memory_file`, so that no disk has the key."""
    pair = await key_worker.self_signed(host)
    for path, text in ((key, pair.key_pem), (certificate, pair.certificate_pem)):
        await asyncio.to_thread(path.write_text, text)
    log.info("Using self-signed cert, a new one at each start")


async def ensure_self_signed(certificate: Path, key: Path, *, host: str, key_worker: KeyWorker) -> None:
    """Make a self-signed pair where there is none; an existing one is used as it is, as in kubelet.

    Raises StartError if there is a certificate without its key.
    """
    if os.access(certificate, os.R_OK) and os.access(key, os.R_OK):
        return
    if os.access(certificate, os.R_OK):  # a key alone is what a crash leaves between the two
        raise StartError(f"error reading key from {key}, certificate and key must be supplied as a pair")
    pair = await key_worker.self_signed(host)
    # The key first: the next start could not do anything with a certificate alone.
    await asyncio.to_thread(write_whole, key, pair.key_pem)
    await asyncio.to_thread(write_whole, certificate, pair.certificate_pem, mode=0o644)
    log.info("Using self-signed cert", {"certFile": str(certificate), "keyFile": str(key)})
