"""HTTP/1.1 as a client reads it: a parser for one answer, fed with its bytes in any pieces. It knows no socket."""

import re
from collections.abc import Generator
from functools import lru_cache
from typing import Final

from agent.klog import quoted

MOST_HEAD_BYTES: Final = 64 * 1024  # of the head, and of the trailers after a chunked body
_MOST_CHUNK_LINE_BYTES = 4096  # the size of a chunk, and extensions that nobody reads
_HEAD_TOO_LONG = f"net/http: server response headers exceeded {MOST_HEAD_BYTES} bytes; aborted"
_MOST_LINES = 16  # that are kept parsed
_MOST_INFORMATIONAL = 5  # as Go: a server may answer 100 Continue that often
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: (.*))?")
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?", re.DOTALL)
_LENGTH = re.compile(r"[0-9]{1,15}")
_WITHOUT_BODY = frozenset({204, 304})

Steps = Generator[None, None, None]


class HttpError(Exception):
    """A request has no complete answer; the text says why, in the words of Go where Go has some."""


class ResponseParser:
    """Parses the answer to one request; raises HttpError, and nothing else, if it is malformed."""

    def __init__(self, method: str) -> None:
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}  # names in lower case
        self.has_head = False
        self.is_complete = False
        self.body = bytearray()  # what has arrived of it and was not taken
        self._keeps_alive = False
        self._ends_with_connection = False
        self._rest = bytearray()  # what has arrived and was not parsed
        self._steps = self._parse(method)
        next(self._steps)

    @property
    def has_begun(self) -> bool:
        """Whether a byte of the answer has arrived."""
        return bool(self._rest) or self.status > 0

    @property
    def is_reusable(self) -> bool:
        """Whether the connection can take another request: the answer is complete, and nothing came after it."""
        return self.is_complete and self._keeps_alive and not self._rest

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the connection."""
        self._rest += data
        next(self._steps, None)

    def feed_eof(self) -> None:
        """Take the end of the connection, which is also the end of a body without a length."""
        if self._ends_with_connection:
            self.is_complete = True
        if not self.is_complete:
            raise HttpError("unexpected EOF" if self.has_begun else "EOF")

    def take(self) -> bytearray:
        """Return what has arrived of the body since the last call."""
        part, self.body = self.body, bytearray()
        return part

    def _parse(self, method: str) -> Steps:
        yield
        for _ in range(_MOST_INFORMATIONAL + 1):
            yield from self._head()
            if self.status >= 200:
                break
            if self.status == 101:
                raise HttpError("the server switched to another protocol")
        else:
            raise HttpError("net/http: too many 1xx informational responses")
        self.has_head = True
        yield from self._body(method)
        self.is_complete = True

    def _head(self) -> Steps:
        while not self._rest:
            yield
        while len(self._rest) < 7 and b"HTTP/1.".startswith(self._rest):
            yield
        if not self._rest.startswith(b"HTTP/1."):
            start = self._rest[:40].decode("latin-1")
            raise HttpError(f"malformed HTTP response {quoted(start)}")
        text = (yield from self._until(b"\r\n\r\n", MOST_HEAD_BYTES, _HEAD_TOO_LONG)).decode("latin-1")
        status_line, *lines = text.split("\r\n")
        match = _STATUS_LINE.fullmatch(status_line)
        if match is None or text.count("\n") != len(lines) or text.count("\r") != len(lines):
            raise HttpError(f"malformed HTTP response {quoted(status_line[:40])}")
        self.status = int(match[2])
        self.reason = match[3] or ""
        self.headers = _fields(lines)
        connection = self.headers.get("connection", "").lower()
        self._keeps_alive = match[1] == "1" and "close" not in connection

    def _body(self, method: str) -> Steps:
        coding = self.headers.get("transfer-encoding")
        length = self.headers.get("content-length")
        if method == "HEAD" or self.status in _WITHOUT_BODY or (method == "CONNECT" and self.status < 300):
            return
        if coding is not None:
            if coding.lower() != "chunked":
                raise HttpError(f"unsupported transfer encoding: {quoted(coding[:40])}")
            yield from self._chunks()
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise HttpError(f"bad Content-Length {quoted(length[:40])}")
            yield from self._part(int(length))
        else:
            self._ends_with_connection = True
            self._keeps_alive = False
            while True:
                yield from self._part(len(self._rest) + 1)

    def _chunks(self) -> Steps:
        while size := (yield from self._chunk_size()):
            yield from self._part(size)
            yield from self._until(b"\r\n", 0, "malformed chunked encoding")
        left = MOST_HEAD_BYTES
        while trailer := (yield from self._until(b"\r\n", left, _HEAD_TOO_LONG)):
            left -= len(trailer)

    def _chunk_size(self) -> Generator[None, None, int]:
        line = yield from self._until(b"\r\n", _MOST_CHUNK_LINE_BYTES, "malformed chunked encoding")
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise HttpError("invalid byte in chunk length")
        return int(match[1], 16)

    def _part(self, size: int) -> Steps:
        """Move so many bytes to the body."""
        while size > len(self._rest):
            size -= len(self._rest)
            self.body += self._rest
            self._rest.clear()
            yield
        self.body += self._rest[:size]
        del self._rest[:size]

    def _until(self, end: bytes, most_bytes: int, error: str) -> Generator[None, None, bytes]:
        """Return the bytes before the next `end`, and drop both; raise HttpError if they are more than so many."""
        start = 0
        while (at := self._rest.find(end, start)) < 0 and len(self._rest) < most_bytes + len(end):
            start = max(0, len(self._rest) - len(end) + 1)
            yield
        if not 0 <= at <= most_bytes:
            raise HttpError(error)
        text = bytes(self._rest[:at])
        del self._rest[: at + len(end)]
        return text


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the header fields; a field that is there twice has both values, as in a list."""
    fields: dict[str, str] = {}
    for name, value in map(_field, lines):
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


@lru_cache(maxsize=_MOST_LINES)  # most lines are those of the answer before
def _field(line: str) -> tuple[str, str]:
    """Return the name of a header field, in lower case, and its value."""
    name, colon, value = line.partition(":")
    if not colon or not _FIELD_NAME.fullmatch(name):
        raise HttpError(f"malformed MIME header line: {quoted(line[:40])}")
    return name.lower(), value.strip(" \t")
