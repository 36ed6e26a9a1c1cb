"""Requests as raw bytes, and what Go's net/http makes of each: the class of faults that request smuggling lives on."""

import socket
import ssl
from typing import NamedTuple

_HOST = b"Host: n\r\n"
_PATIENCE_SECONDS = 10.0


class Case(NamedTuple):
    """One request, and the status that net/http refuses it with; 0 if a handler gets to see it."""

    raw: bytes
    refusal: int = 0


def _get(headers: bytes = _HOST, line: bytes = b"GET /nonsense HTTP/1.1") -> bytes:
    return line + b"\r\n" + headers + b"\r\n"


def _post(headers: bytes, body: bytes = b"") -> bytes:
    return b"POST /nonsense HTTP/1.1\r\n" + _HOST + headers + b"\r\n" + body


_END = b"0\r\n\r\n"
_LINES = {
    "no version": (b"GET /nonsense\r\n\r\n", 400),
    "HTTP/0.9, one line": (b"GET /nonsense\r\n", 400),
    "no version, but a Host": (b"GET /nonsense\r\nHost: n\r\n\r\n", 400),
    "HTTP/0.9": (_get(line=b"GET /nonsense HTTP/0.9"), 505),
    "HTTP/1.0 without Host": (_get(b"", line=b"GET /nonsense HTTP/1.0"), 0),
    "HTTP/1.2": (_get(line=b"GET /nonsense HTTP/1.2"), 0),
    "HTTP/2.0": (_get(line=b"GET /nonsense HTTP/2.0"), 505),
    "HTTP/3.0": (_get(line=b"GET /nonsense HTTP/3.0"), 505),
    "HTTP/1": (_get(line=b"GET /nonsense HTTP/1"), 400),
    "HTTP/1.10": (_get(line=b"GET /nonsense HTTP/1.10"), 400),
    "http/1.1": (_get(line=b"GET /nonsense http/1.1"), 400),
    "RTSP/1.0": (_get(line=b"DESCRIBE /nonsense RTSP/1.0"), 400),
    "ICE/1.0": (_get(line=b"SOURCE /nonsense ICE/1.0"), 400),
    "two spaces": (_get(line=b"GET  /nonsense HTTP/1.1"), 400),
    "a tab": (_get(line=b"GET\t/nonsense HTTP/1.1"), 400),
    "a space at the end": (_get(line=b"GET /nonsense HTTP/1.1 "), 400),
    "a space in the path": (_get(line=b"GET /non sense HTTP/1.1"), 400),
    "NUL in the path": (_get(line=b"GET /non\0sense HTTP/1.1"), 400),
    "a bad escape": (_get(line=b"GET /non%zzsense HTTP/1.1"), 400),
    "a bad escape in the query": (_get(line=b"GET /nonsense?a=%zz HTTP/1.1"), 0),
    "no path": (_get(line=b"GET HTTP/1.1"), 400),
    "a bad method": (_get(line=b"G(T /nonsense HTTP/1.1"), 400),
    "an empty line before": (b"\r\n" + _get(), 400),
    "a line feed before": (b"\n" + _get(), 400),
}
_HOSTS = {
    "good": (_get(), 0),
    "no Host": (_get(b""), 400),
    "no Host, but an absolute URL": (_get(b"", line=b"GET http://n/nonsense HTTP/1.1"), 400),
    "empty": (_get(b"Host:\r\n"), 0),
    "two": (_get(_HOST + b"Host: m\r\n"), 400),
    "the same twice": (_get(_HOST + _HOST), 400),
    "HTTP/1.0, malformed": (_get(b"Host: a b\r\n", line=b"GET /nonsense HTTP/1.0"), 400),
    "an IPv6 address": (_get(b"Host: [::1]:10250\r\n"), 0),
    **{
        f"with {char!r}": (_get(b"Host: a" + bytes([char]) + b"b\r\n"), 400)
        for char in b'\0\x01\t\r\x1b\x7f\xff "#/<>?@\\^`{|}'
    },
    **{f"with {char!r}": (_get(b"Host: a" + bytes([char]) + b"b\r\n"), 0) for char in b"!$%&'()*+,-.:;=[]_~"},
}
_ENCODINGS = {
    "chunked": (_post(b"Transfer-Encoding: chunked\r\n", _END), 0),
    "Chunked": (_post(b"Transfer-Encoding: Chunked\r\n", _END), 0),
    "chunked in a GET": (_get(_HOST + b"Transfer-Encoding: chunked\r\n") + _END, 0),
    "gzip, chunked in a GET": (_get(_HOST + b"Transfer-Encoding: gzip, chunked\r\n") + _END, 501),
    **{
        value.decode(): (_post(b"Transfer-Encoding: " + value + b"\r\n", _END), 501)
        for value in (
            *(b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"identity", b"identity, chunked", b"gzip"),
            *(b"deflate", b"xchunked", b"chunked;q=1", b",chunked", b"chunked,", b'"chunked"', b"chunked\tx"),
        )
    },
    "empty": (_post(b"Transfer-Encoding:\r\n"), 501),
    "two lines": (_post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", _END), 501),
    "two lines, one gzip": (_post(b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", _END), 501),
    "a space before the colon": (_post(b"Transfer-Encoding : chunked\r\n", _END), 400),
    "a vertical tab": (_post(b"Transfer-Encoding: \x0bchunked\r\n", _END), 400),
    "a length first": (_post(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", _END), 0),
    "a length after": (_post(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", _END), 0),
    "a length in the trailer": (_post(b"Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", _END), 400),
    "an extension": (_post(b"Transfer-Encoding: chunked\r\n", b"1;a=b\r\nx\r\n" + _END), 0),
    "TE alone": (_get(_HOST + b"TE: gzip, chunked\r\n"), 0),
}
_LENGTHS = {
    "leading zeros": (_post(b"Content-Length: 01\r\n", b"x"), 0),
    "twice the same": (_post(b"Content-Length: 1\r\nContent-Length: 1\r\n", b"x"), 0),
    "two": (_post(b"Content-Length: 1\r\nContent-Length: 2\r\n", b"xx"), 400),
    **{
        value.decode(): (_post(b"Content-Length: " + value + b"\r\n", b"x"), 400)
        for value in (
            *(b"", b"-1", b"+1", b"0x1", b"1_0", b"1 1", b"1, 1", b"1,2", b"1.0", b"1e1", "٣".encode()),
            *(b"9223372036854775808", b"99999999999999999999999"),
        )
    },
}
_FIELDS = {
    "folded": (_get(_HOST + b"X: a\r\n b\r\n"), 0),
    "folded encoding": (_post(b"Transfer-Encoding:\r\n chunked\r\n", _END), 0),
    "folded, first": (_get(b" X: a\r\n" + _HOST), 400),
    "bare line feeds": (b"GET /nonsense HTTP/1.1\nHost: n\n\n", 0),
    "a bare line feed": (_get(b"Host: n\nX: y\r\n"), 0),
    "a bare carriage return": (_get(b"Host: n\rX: y\r\n"), 400),
    "two carriage returns": (_get(b"Host: n\r\r\n"), 400),
    "a space before the colon": (_get(_HOST + b"X : y\r\n"), 400),
    "no colon": (_get(_HOST + b"nonsense\r\n"), 400),
    "no name": (_get(_HOST + b": y\r\n"), 400),
    "a space in the name": (_get(_HOST + b"X Y: z\r\n"), 400),
    "NUL in the name": (_get(_HOST + b"X\0Y: z\r\n"), 400),
    "NUL in the value": (_get(_HOST + b"X: a\0b\r\n"), 400),
    "ESC in the value": (_get(_HOST + b"X: a\x1bb\r\n"), 400),
    "latin-1 in the value": (_get(_HOST + b"X: a\xffb\r\n"), 0),
    "an expectation": (_post(b"Expect: nonsense\r\nContent-Length: 1\r\n", b"x"), 417),
}
_GROUPS = {"line": _LINES, "Host": _HOSTS, "encoding": _ENCODINGS, "length": _LENGTHS, "field": _FIELDS}
CASES = {f"{group}: {name}": Case(*case) for group, cases in _GROUPS.items() for name, case in cases.items()}

_UNREADABLE = "the parser does not read it: refused, where Go is lenient"
STRICTER = {
    "line: HTTP/1.2": "the parser knows no version between 1.1 and 2.0",
    "encoding: a length first": "RFC 9112 6.3 calls it an attempt at smuggling: refused, where Go ignores the length",
    "encoding: a length after": "as above",
    "length: twice the same": "RFC 9110 8.6 lets a server refuse it",
    "field: folded": _UNREADABLE,
    "field: folded encoding": _UNREADABLE,
    "field: bare line feeds": _UNREADABLE,
    "field: a bare line feed": _UNREADABLE,
    **{
        name: "a 5xx is for faults of ours, and Go has 501 or 505"
        for name, case in CASES.items()
        if case.refusal >= 500
    },
}
"""Cases that ours answers with 400, and why."""


def status(port: int, raw: bytes, *, tls: ssl.SSLContext | None = None) -> int:
    """The status that a server answers these bytes with; 0 if it says nothing."""
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_SECONDS) as plain:
        connection = tls.wrap_socket(plain) if tls else plain
        with connection:
            connection.sendall(raw)
            answer = b""
            while b"\r\n" not in answer and (more := connection.recv(4096)):
                answer += more
    version, _, rest = answer.partition(b" ")
    return int(rest[:3]) if version.startswith(b"HTTP/1.") else 0
