"""Client certificates that are asked for and never required, as a kubelet asks for them.

Go's `tls.RequestClientCert` leaves it to the server what an untrusted certificate means: a kubelet goes on to the
bearer token, and else answers 401. Python's ssl module knows no such mode: with CERT_OPTIONAL a certificate that does
not verify ends the handshake, and with CERT_NONE none is asked for. OpenSSL itself has the hook: a callback in the
place of its verification. So this file reaches for libssl through ctypes, once for each TLS context, and does nothing
else there. Where that is not to be had, as in an interpreter that has OpenSSL built in without its symbols,
CERT_OPTIONAL has to do: the trusted are served the same, the untrusted see a handshake that fails.
"""

import hashlib
import logging
import ssl
import sys
from collections.abc import Callable
from typing import Any

from agent.core.recall import Recall
from agent.klog import V2

log = logging.getLogger(__name__)

_MOST_CERTIFICATES = 1024
_FOREVER = float("inf")
_SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF = 44, 0  # openssl/ssl.h
_DIGEST_BYTES = 32

Library = Any
"""A ctypes.CDLL, which is not imported where there is no client CA."""


class Trust:
    """Remembers which client certificates verified in their handshakes."""

    def __init__(self, library: Callable[[], Library | None] | None = None) -> None:
        self._library = (library or _libssl)()
        self._authorities = ""
        self._verified: Recall[bytes, bool] = Recall(_MOST_CERTIFICATES)
        self._callbacks: list[Any] = []  # OpenSSL holds no reference to what it calls
        if self._library is None:
            log.log(V2, "OpenSSL is out of reach: handshakes with an untrusted client certificate will fail")

    def ask_for_certificates(self, context: ssl.SSLContext, authorities: str) -> None:
        """Have a server's context ask for certificates, trust those of these authorities, and let others in as well."""
        context.load_verify_locations(cadata=authorities)
        # As Go: whatever is in the bundle is a root, whether it signed itself or not.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        context.verify_mode = ssl.CERT_OPTIONAL
        # A resumed session would not be verified again.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.sslobject_class = _Session
        if authorities != self._authorities:
            self._authorities, self._verified = authorities, Recall(_MOST_CERTIFICATES)
        if self._library is not None:
            self._intercept(context)

    def is_trusted(self, der: bytes) -> bool:
        """Whether the certificate of a connection was signed by one of the authorities as they are now."""
        if self._library is None:
            return True  # another one would not have come so far
        return self._verified.get(hashlib.sha256(der).digest(), now=0.0) is not None

    def _intercept(self, context: ssl.SSLContext) -> None:
        import ctypes  # noqa: PLC0415  costs memory, and few need it

        libssl: Library = self._library
        verified = self._verified

        def verify(store_context: int, _: int) -> int:
            """Note the leaf if its chain is good; the handshake goes on either way."""
            if libssl.X509_verify_cert(store_context) == 1:
                digest, size = ctypes.create_string_buffer(64), ctypes.c_uint(0)
                leaf = libssl.X509_STORE_CTX_get0_cert(store_context)
                libssl.X509_digest(leaf, libssl.EVP_sha256(), digest, ctypes.byref(size))
                verified.keep(digest.raw[:_DIGEST_BYTES], True, until=_FOREVER)
            else:
                libssl.X509_STORE_CTX_set_error(store_context, 0)
                libssl.ERR_clear_error()  # or the handshake would take it for a fault of its own
            return 1

        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(verify)
        self._callbacks.append(callback)
        pointer = _pointer(context)
        libssl.SSL_CTX_ctrl(pointer, _SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF, None)
        libssl.SSL_CTX_set_cert_verify_callback(pointer, callback, None)


class _Session(ssl.SSLObject):
    """A connection that fails, as in Go, when it is shown a certificate that cannot be read.

    asyncio asks for all of it as text after each handshake, and takes an error that is none of TLS for a bug of ours.
    """

    def getpeercert(self, binary_form: bool = False) -> Any:
        """What the other side has shown."""
        try:
            return super().getpeercert(binary_form)
        except ValueError as error:
            raise ssl.SSLError(f"failed to parse certificate from client: {error}") from error


def _libssl() -> Library | None:
    """The OpenSSL that the ssl module uses, with the functions needed here; None where it is out of reach."""
    if sys.implementation.name != "cpython":
        return None
    try:
        import _ssl  # noqa: PLC0415  as ctypes
        import ctypes  # noqa: PLC0415  costs memory, and few need it

        library = ctypes.CDLL(_ssl.__file__)  # looks into the libraries that it was linked with, too
        pointer, number = ctypes.c_void_p, ctypes.c_int
        for name, result, arguments in (
            ("X509_verify_cert", number, [pointer]),
            ("X509_STORE_CTX_get0_cert", pointer, [pointer]),
            ("X509_STORE_CTX_set_error", None, [pointer, number]),
            ("X509_digest", number, [pointer, pointer, pointer, pointer]),
            ("EVP_sha256", pointer, []),
            ("ERR_clear_error", None, []),
            ("SSL_CTX_ctrl", ctypes.c_long, [pointer, number, ctypes.c_long, pointer]),
            ("SSL_CTX_set_cert_verify_callback", None, [pointer, pointer, pointer]),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (ImportError, AttributeError, OSError):
        return None
    return library


def _pointer(context: ssl.SSLContext) -> int:
    """The SSL_CTX of a context: the first field behind the head that every Python object has (Modules/_ssl.c)."""
    import ctypes  # noqa: PLC0415  as above

    found = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
    if not found:
        raise RuntimeError("an SSLContext without an SSL_CTX")
    return found
