"""TLS of the servers: versions, cipher suites, and the CA that client certificates are verified with."""

import _ssl
import logging
import ssl
import sys
from pathlib import Path
from typing import Any

from agent.adapters.certificates.serving import plain_context
from agent.adapters.credentials import Credentials
from agent.core.config import Serving
from agent.core.x509 import read_certificates

log = logging.getLogger(__name__)

_TLS13 = "VersionTLS13"
_OLD_VERSIONS = {"VersionTLS10", "VersionTLS11"}
_TLS13_SUITES = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
_CIPHERS = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305": "CHACHA20-POLY1305",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "RC4_128_SHA": "RC4-SHA",
}


class Tls:
    """Makes the contexts that connections are served with, each with the client CA as it is then."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._authority: bytes | None = None
        self.cluster_ca = ""  # PEM; it verifies client certificates where the settings name no file

    async def use(self, credentials: Credentials) -> None:
        """Trust the CA in these credentials from the next context on, if the settings say so."""
        if self._serving.trusts_cluster_ca and credentials.authority != self._authority:
            self._authority = credentials.authority
            self.cluster_ca = _usable_ca(credentials)
            if not (self.cluster_ca or self._serving.anonymous):
                fields = {"source": credentials.source, "hint": "--client-ca-file names a CA"}
                log.warning("No CA is known, so the API server gets 401 here, and kubectl logs fails", fields)

    def client_ca(self) -> str:
        """Return the PEM that client certificates are verified with; empty if none are asked for.

        Raises OSError or ValueError if the file that the settings name does not load.
        """
        if not self._serving.client_ca_file:
            return self.cluster_ca
        text = Path(self._serving.client_ca_file).read_text("utf-8")
        read_certificates(text)
        return text

    def context(self) -> ssl.SSLContext:
        """Return a context without a certificate. Raises OSError or ValueError if the client CA does not load."""
        context = plain_context()
        if self._serving.tls_min_version == _TLS13:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
        elif suites := self._serving.tls_cipher_suites:
            _restrict(context, suites)
        if authorities := self.client_ca():
            _request_client_certificates(context, authorities)
        return context


def _usable_ca(credentials: Credentials) -> str:
    """Return the CA of the API server as PEM; empty if the credentials name none, or it cannot be read."""
    text = credentials.authority.decode("ascii", "ignore")  # comments may be anything
    try:
        return text if text and read_certificates(text) else ""
    except ValueError as error:
        log.warning("Unable to read the certificate-authority", {"err": error, "source": credentials.source})
        return ""


def verified_chain(tls: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the certificates, as DER, that verified the client in this handshake, its own first; empty without one.

    Whether they are still valid is for the caller to check: a connection may outlive them.
    """
    if sys.version_info >= (3, 13):
        return tuple(tls.get_verified_chain())
    chain = tls._sslobj.get_verified_chain()  # type: ignore[attr-defined]  # public from Python 3.13 on
    return tuple(certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain or ())


def _request_client_certificates(context: ssl.SSLContext, authorities: str) -> None:
    """Ask clients for a certificate, require none, and verify the one that is sent in each handshake anew.

    Go's tls.RequestClientCert, which a kubelet uses, lets a certificate that does not verify into the handshake, and
    the kubelet goes on to the bearer token, or answers 401. Python's ssl module has no such mode: here the handshake
    fails.
    """
    context.load_verify_locations(cadata=authorities)
    # As Go: whatever is in the bundle is a root, whether it signed itself or not.
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = ssl.CERT_OPTIONAL
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.sslobject_class = _Session


class _Session(ssl.SSLObject):
    """A connection whose handshake fails with SSLError where asyncio would log the error as a bug of ours."""

    def do_handshake(self) -> None:
        """Reject a TLS 1.2 session that is resumed: its certificate would not be verified again."""
        super().do_handshake()
        if self.session_reused and self.getpeercert(binary_form=True):
            raise ssl.SSLError("a session with a client certificate cannot be resumed")

    def getpeercert(self, binary_form: bool = False) -> Any:
        """Return the client's certificate; as in Go, the connection fails if it cannot be parsed."""
        try:
            return super().getpeercert(binary_form)
        except ValueError as error:
            raise ssl.SSLError(f"failed to parse certificate from client: {error}") from error


def log_unsupported(serving: Serving) -> None:
    """Log which TLS settings have no effect here, or are weak."""
    if serving.tls_min_version in _OLD_VERSIONS:
        log.warning("TLS below 1.2 is not spoken here", {"tlsMinVersion": serving.tls_min_version})
    if serving.tls_min_version == _TLS13 and serving.tls_cipher_suites:
        log.info("Warning: TLS 1.3 cipher suites are not configurable, ignoring --tls-cipher-suites")
    if weak := [name for name in serving.tls_cipher_suites if "RC4" in name or "3DES" in name]:
        log.info("Use of insecure cipher detected.", {"cipher": weak})


def _restrict(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    """Offer only these suites for TLS 1.2; those of TLS 1.3 are always offered, as by Go."""
    names = [_openssl_name(name) for name in suites if name not in _TLS13_SUITES]
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:  # no suite is left, or OpenSSL has removed them
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def _openssl_name(name: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` → `ECDHE-RSA-AES128-GCM-SHA256`."""
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    prefix = "" if exchange == "RSA" else f"{exchange.replace('_', '-')}-"
    return prefix + _CIPHERS[cipher]
