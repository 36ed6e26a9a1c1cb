"""Requests that Go's net/http refuses before any handler sees them, and that aiohttp would let pass."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.http_parser import RawRequestMessage

TALKS_TLS = b"\x16"  # the first byte of a ClientHello
TALKS_HTTP = (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")  # net/http: tlsRecordHeaderLooksLikeHTTP
WRONG_PROTOCOL = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")  # httpguts.ValidHostHeader
NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_MOST_BYTES = 2**63 - 1
_NO_TRAILERS = {"transfer-encoding", "trailer", "content-length"}
_REQUEST_LINE = re.compile(rb"[^ \r\n]+ [^ \r\n]+ HTTP/")


class Fault(NamedTuple):
    """How a request is refused."""

    status: int
    text: str


_BAD_REQUEST = Fault(400, "400 Bad Request")
_BAD_HOST = Fault(400, "400 Bad Request: malformed Host header")
# Go has 505 and 501 for these two. A 5xx is for faults of ours: whoever counts them must not be misled by a stranger.
_BAD_VERSION = Fault(400, "400 Bad Request: unsupported protocol version")
_BAD_ENCODING = Fault(400, "400 Bad Request: unsupported transfer encoding")
_BAD_EXPECTATION = Fault(417, "")


def is_request_line(line: bytes) -> bool:
    """Whether it has a method, a target and HTTP's version; the parser also takes RTSP, and a version left out."""
    return _REQUEST_LINE.match(line) is not None


def framing_fault(message: RawRequestMessage) -> Fault | None:
    """Return the first thing that net/http would refuse the request for; None if there is none."""
    return next(_faults(message), None)


def parsing_fault(reason: str) -> Fault:
    """Return how net/http refuses what the parser could not read; the reason is the parser's own."""
    line = reason.partition("\n")[0]  # below it is what the client sent
    return _BAD_ENCODING if "Transfer-Encoding" in line and "Content-Length" not in line else _BAD_REQUEST


def _faults(message: RawRequestMessage) -> Iterator[Fault]:
    headers, version = message.headers, message.version
    if version not in {HttpVersion10, HttpVersion11}:
        yield _BAD_VERSION
    if NO_ESCAPE.search(message.path.partition("?")[0]):
        yield _BAD_REQUEST
    # net/http: transferReader.parseTransferEncoding, which does not look at it in HTTP/1.0
    if version == HttpVersion11 and headers.get(hdrs.TRANSFER_ENCODING, "chunked").lower() != "chunked":
        yield _BAD_ENCODING
    if int(headers.get(hdrs.CONTENT_LENGTH, "0")) > _MOST_BYTES:
        yield _BAD_REQUEST
    if _NO_TRAILERS & {name.strip().lower() for name in headers.get(hdrs.TRAILER, "").split(",")}:
        yield _BAD_REQUEST
    if not _HOST.fullmatch(headers.get(hdrs.HOST, "")):
        yield _BAD_HOST
    if headers.get(hdrs.EXPECT, "100-continue").lower() != "100-continue":
        yield _BAD_EXPECTATION
