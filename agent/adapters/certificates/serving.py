"""The certificate that a node serves with: from files, made by itself, or signed by the cluster; it may change."""

import asyncio
import hashlib
import logging
import os
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.adapters.certificates.files import write_whole
from agent.adapters.certificates.smith import Smith
from agent.adapters.certificates.store import no_password
from agent.core.x509 import read_certificates
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

_POLL_SECONDS = 10.0
_MOST_SESSIONS = 1024  # of TLS 1.2, which OpenSSL would keep 20,480 of, for two hours


def plain_context() -> ssl.SSLContext:
    """TLS as Go's servers speak it by default."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class ServingCertificate:
    """A TLS context for a server, made anew whenever its files change.

    Until there is a certificate, handshakes fail, as with a kubelet that waits for one. Connections that are open keep
    the context they began with.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        clock: Clock,
        fresh: Callable[[], ssl.SSLContext] = plain_context,
        beside: Sequence[Path] = (),
    ) -> None:
        self._certificate, self._key, self._clock = certificate, key, clock
        self._fresh, self._beside = fresh, beside  # what makes a context, and the files it reads
        self._digest = b""
        self._fault = ""
        self.context = plain_context()
        self.asked = asyncio.Event()  # set it to have the files read now
        self.on_change: Callable[[], None] = lambda: None

    @property
    def is_ready(self) -> bool:
        """Whether a handshake can succeed."""
        return bool(self._digest)

    async def run(self) -> None:
        """Follow the files forever."""
        while True:
            await self.sync()
            await self._clock.wait(self.asked, _POLL_SECONDS)
            self.asked.clear()

    async def require(self) -> None:
        """Load the files now; a StartError if they do not load."""
        await self.sync()
        if not self.is_ready:
            raise StartError(
                f"unable to load the serving certificate {self._certificate} and its key {self._key}: "
                f"{self._fault or 'there is no such file'}; check --tls-cert-file and --tls-private-key-file"
            )

    async def sync(self) -> None:
        """Load the files if they are others; such as do not load change nothing."""
        if loaded := await asyncio.to_thread(self._load):
            self.context = loaded
            self.on_change()

    def _load(self) -> ssl.SSLContext | None:
        try:
            texts = [path.read_text("utf-8") for path in (self._certificate, self._key, *self._beside)]
            digest = hashlib.sha256("".join(texts).encode()).digest()
            if digest == self._digest and self.context.session_stats()["number"] <= _MOST_SESSIONS:
                return None
            read_certificates(texts[0])
            context = self._fresh()
            context.load_cert_chain(self._certificate, self._key, no_password)
        except FileNotFoundError:
            return None  # it has not been signed yet, or is just being replaced
        except (OSError, ValueError) as error:
            self._complain(str(error))
            return None
        self._digest, self._fault = digest, ""
        log.info("Loaded serving certificate", {"certFile": str(self._certificate)})
        return context

    def _complain(self, fault: str) -> None:
        if fault != self._fault:  # once, not every ten seconds
            self._fault = fault
            log.error("invalid certificate and key pair from file", {"err": fault, "certFile": str(self._certificate)})


def can_keep(folder: Path) -> bool:
    """Whether a pair that a node makes for itself is in a folder already, or can be written there."""
    nearest = next(place for place in (folder, *folder.parents) if os.path.isdir(place))  # noqa: PTH112  never raises
    return os.access(folder / "kubelet.key", os.R_OK) or os.access(nearest, os.W_OK | os.X_OK)


async def write_to_memory(certificate: Path, key: Path, *, host: str, smith: Smith) -> None:
    """Make a pair that lasts as long as this process, in files of `memory_file`: its key is on no disk."""
    pair = await smith.self_signed(host)
    for path, text in ((key, pair.key_pem), (certificate, pair.certificate_pem)):
        await asyncio.to_thread(path.write_text, text)
    log.info("Using self-signed cert, a new one at each start")


async def ensure_self_signed(certificate: Path, key: Path, *, host: str, smith: Smith) -> None:
    """Make a pair where there is none; one that is there is used as it is, as in kubelet."""
    if os.access(certificate, os.R_OK) and os.access(key, os.R_OK):
        return
    if os.access(certificate, os.R_OK):  # a key alone is what a crash leaves between the two
        raise StartError(f"error reading key from {key}, certificate and key must be supplied as a pair")
    pair = await smith.self_signed(host)
    # The key first: with a certificate alone the next start would not know what to do.
    await asyncio.to_thread(write_whole, key, pair.key_pem)
    await asyncio.to_thread(write_whole, certificate, pair.certificate_pem, mode=0o644)
    log.info("Using self-signed cert", {"certFile": str(certificate), "keyFile": str(key)})
