"""The certificate that a node serves with: from files, made by itself, or signed by the cluster; it may change."""

import asyncio
import hashlib
import logging
import os
import ssl
from pathlib import Path

from agent.adapters.certificates.files import write_whole
from agent.adapters.certificates.smith import Smith
from agent.core.x509 import read_certificates
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

_POLL_SECONDS = 10.0


class ServingCertificate:
    """A TLS context for a server, whose certificate follows its files.

    Until there is one, handshakes fail, as with a kubelet that waits for its certificate. Connections that are open
    keep the one they began with.
    """

    def __init__(self, certificate: Path, key: Path, *, clock: Clock) -> None:
        self._certificate, self._key, self._clock = certificate, key, clock
        self._digest = b""
        self._fault = ""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2  # as Go by default
        self.asked = asyncio.Event()  # set it to have the files read now

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

    async def sync(self) -> None:
        """Load the pair if it is another one; a pair that does not load changes nothing."""
        await asyncio.to_thread(self._load)

    def _load(self) -> None:
        try:
            texts = [path.read_text("ascii") for path in (self._certificate, self._key)]
            digest = hashlib.sha256("".join(texts).encode()).digest()
            if digest == self._digest:
                return
            read_certificates(texts[0])
            # On a context of its own first: half a change must not reach the one that serves.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._certificate, self._key, lambda: b"")
            self.context.load_cert_chain(self._certificate, self._key, lambda: b"")
        except FileNotFoundError:
            return  # it has not been signed yet, or is just being replaced
        except (OSError, ValueError) as error:
            self._complain(str(error))
            return
        self._digest, self._fault = digest, ""
        log.info("Loaded serving certificate", {"certFile": str(self._certificate)})

    def _complain(self, fault: str) -> None:
        if fault != self._fault:  # once, not every ten seconds
            self._fault = fault
            log.error("invalid certificate and key pair from file", {"err": fault, "certFile": str(self._certificate)})


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
