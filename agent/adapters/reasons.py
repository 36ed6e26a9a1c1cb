"""Why a connection failed, in the words that Go has for it: those that a kubelet would log."""

import os
import re
import socket
import ssl
from typing import Final, Literal

Blame = Literal["authority", "time", "name", "certificate"]
"""What is wrong with a certificate that is not trusted."""

# OpenSSL's X509_V_ERR_…
_BLAMES: Final[dict[int, Blame]] = {
    **dict.fromkeys((2, 18, 19, 20, 21, 27), "authority"),
    **dict.fromkeys((9, 10), "time"),
    **dict.fromkeys((62, 64), "name"),
}
_TLS_REASONS: Final = {
    "WRONG_VERSION_NUMBER": "tls: first record does not look like a TLS handshake",
    "PACKET_LENGTH_TOO_LONG": "tls: first record does not look like a TLS handshake",
    "RECORD_LAYER_FAILURE": "tls: first record does not look like a TLS handshake",
    "UNSUPPORTED_PROTOCOL": "tls: server selected unsupported protocol version",
    "UNEXPECTED_EOF_WHILE_READING": "EOF",
}
_ALERT = re.compile(r"(?:SSLV3|TLSV\d+)_ALERT_(\w+)")
_ALERTS: Final = {  # those that Go's crypto/tls does not call as OpenSSL does
    "UNKNOWN_CA": "unknown certificate authority",
    "CERTIFICATE_EXPIRED": "expired certificate",
    "CERTIFICATE_REVOKED": "revoked certificate",
    "PROTOCOL_VERSION": "protocol version not supported",
    "UNRECOGNIZED_NAME": "unrecognized name",
}
_NO_SUCH_HOST = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_ERRNO = re.compile(r"\[Errno (\d+)\]")


def blame(error: ssl.SSLCertVerificationError) -> Blame:
    """Return what is wrong with a certificate."""
    return _BLAMES.get(error.verify_code, "certificate")


def verify_reason(error: ssl.SSLCertVerificationError, server_name: str) -> str:
    """Return why a certificate is not trusted."""
    reason = {
        "authority": "certificate signed by unknown authority",
        "time": f"certificate has expired or is not yet valid: {error.verify_message}",
        "name": f"certificate is not valid for {server_name}",
        "certificate": error.verify_message,
    }[blame(error)]
    return f"tls: failed to verify certificate: x509: {reason}"


def connection_reason(error: Exception) -> str:
    """Return why a connection ended."""
    if isinstance(error, ssl.SSLError):
        return _tls_reason(error.reason or str(error))
    if isinstance(error, OSError) and error.errno:
        return f"read: {os.strerror(error.errno).lower()}"
    return "EOF" if isinstance(error, ConnectionError) else str(error)


def connect_reason(error: OSError) -> str:
    """Return why no connection came about; of several addresses, the first counts, as in Go."""
    text = _ERRNO.search(str(error))  # aiohappyeyeballs has the errors of several addresses in one text
    errno = error.errno or (int(text[1]) if text else 0)
    return os.strerror(errno).lower() if errno else str(error)


def lookup_reason(error: OSError) -> str:
    """Return why a name has no address."""
    if isinstance(error, socket.gaierror):
        return "no such host" if error.errno in _NO_SUCH_HOST else str(error.strerror)
    return str(error)


def _tls_reason(reason: str) -> str:
    if alert := _ALERT.fullmatch(reason):
        return f"remote error: tls: {_ALERTS.get(alert[1]) or _words(alert[1])}"
    return _TLS_REASONS.get(reason) or f"tls: {_words(reason)}"


def _words(constant: str) -> str:
    return constant.lower().replace("_", " ")
