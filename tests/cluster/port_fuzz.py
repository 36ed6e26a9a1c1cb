"""Requests to a kubelet's ports with anything in every place, from a seed: the same ones in every run."""

import asyncio
import base64
import random
import re
import ssl
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

MARK = (
    "forged-by-the-fuzzer"  # stands behind a line break in paths, queries and headers: no line of a log begins with it
)
_PATIENCE_SECONDS = 1.0  # for what a server goes on to wait for the rest of
_LONG_PATIENCE_SECONDS = 60.0  # for the answer to a whole request, on a busy machine
_MOST_ON_A_CONNECTION = 20
_MOST_BODY_BYTES = 64 * 1024
# What ends with a clear no where a container is wanted: a kubelet says 500 too, when its runtime has no such container.
_DELIBERATE = re.compile(rb"no containers run on this node|container not found \(")

_KNOWN_METHODS = ("GET", "GET", "GET", "GET", "POST", "POST", "PUT", "HEAD", "DELETE", "OPTIONS")
_METHODS = (*_KNOWN_METHODS, "PATCH", "TRACE", "CONNECT", "FROB", "get", "")
_NAMES = (
    *("a", "c", "..", ".", "", "%2e%2e", "%2E%2E%2F", "..%2f..%2f", "%00", "%0a", "%0d%0a", "%1b%5b31m", "%ff"),
    *("%ff%fe", "%c0%ae%c0%ae", "%ed%a0%80", "%f4%90%80%80", "%", "%zz", "%u0041", "*", "~", "{x}", "a b", "é"),
    *("%C3%A9", "\xff", "a" * 255, "a" * 300, "a" * 5000, "%41" * 300, "/" * 20, "index.html", f"%0a{MARK}"),
    *("pipe", "loop", "%7f", "\\", "-1", "0", "\u0663", "u1", "<script>", "'\"", ";", "a;b", "a:b", "[::1]", "@"),
    *("%25%30%30", "nul%00.log", "%e2%80%ae", "x%ff"),
)
_NUMBERS = (
    *("0", "1", "-1", "10", "+5", "", "x", "1e3", "1.5", "0x10", "\u0663", "\u0665\u0666", " 1", "1 ", "%00", "%ff"),
    *("null", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "9" * 50, "9" * 5000, "-" * 50),
    *("NaN", "inf", "%D9%A3", "1_0"),
)
_TIMES = (
    *("2024-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "null"),
    *("", "0001-01-01T00:00:00%2B23:59", "2024-13-01T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01t00:00:00z"),
    *("99999-01-01", "2024-01-01T00:00:00." + "9" * 400 + "Z", "2016-12-31T23:59:60Z", "-1", "%ff"),
    "\u0662024-01-01T00:00:00Z",
)
_DATES = (
    *("Mon, 01 Jan 2024 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "", "0"),
    *("-1", "Thu, 01 Jan 99999 00:00:00 GMT", "Thu, 01 Jan " + "9" * 30 + " 00:00:00 GMT", ",,,,", ":", "\xff\xfe"),
    *("Thu, 01 Jan " + "9" * 5000 + " 0:0:0", "Thu, 99 Foo 2024 99:99:99 GMT", "Thu, -1 Jan -2024 -1:-1:-1 -9999"),
    *("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Mon, 01 Jan 2024 00:00:00 +9999"),
    "Mon, 01 Jan 2024 00:00:00 " + "9" * 400,
)
_RANGES = (
    *("bytes=0-1", "bytes=-1", "bytes=0-", "bytes=", "bytes=-", "bytes=5-1", "bytes=0-0,1-1", "bytes=--1"),
    *("bytes=" + "0-1," * 900, "bytes=99999999999999999999-", "bytes=-99999999999999999999", "bytes=+1-2"),
    *("bytes=" + "9" * 5000 + "-", "bytes=\u0663-\u0664", "lines=0-1", "bytes 0-1", "bytes=\xff-1", "="),
    *("bytes=1-" + "9" * 400, "bytes= 0 - 1 "),
)
_HOSTS = (
    *("127.0.0.1", "localhost", "n", "evil.example", "[::1]", "[::1", "::1", "a b", "", "127.0.0.1:99999", "\xff"),
    *("%00", "[fe80::1%25lo]", "[" * 50, ":", "127.0.0.1.evil.example", "localhost:x", "@", "a" * 4000, "0x7f.1"),
)
_TOKEN = "base64url.bearer.authorization.k8s.io."
_PROTOCOLS = (
    *("v5.channel.k8s.io", "", ",", "v4.channel.k8s.io, portforward.k8s.io", _TOKEN, f"{_TOKEN}eA", f"{_TOKEN}eA,x"),
    *(f"{_TOKEN}eA,{_TOKEN}eA,x", f"{_TOKEN}=,x", f"{_TOKEN}_w,x", f"{_TOKEN}\xff,x", f"{_TOKEN}{'A' * 4001},x"),
    *("," * 500, "SPDY/3.1+portforward.k8s.io", f"{_TOKEN.upper()}eA,x", f" {_TOKEN}eA , x"),
)
_CONTROLS = (f"x\n{MARK}", f"x\r{MARK}", "\x1b[31mred", "\0", "\x7f", "\t", "\udcff", "\U0001d7d9")
_WORDS = (*_NAMES, *_NUMBERS, *_DATES, *_RANGES, *_CONTROLS)
_AUTHORIZATIONS = (
    *("Bearer \xff", "Bearer", "Bearer ", "Bearer  x", "bearer\tx", "Basic \xff", "Basic dTpw", "\xff", "Negotiate"),
    *(f"Bearer {'A' * 8000}", "Bearer \udcff", f"Bearer \x1b[31m\n{MARK}"),
)
_CHUNK_SIZES = (b"-1", b"ffffffffff", b"zz", b"", b"1;x=\xff", b"0x1", b"+1", b"1 ", b"f" * 40, b"\xd9\xa3")
_CODINGS = ("gzip, chunked", "chunked, chunked", "identity", "x", "chunked\xff", ", chunked")
_BODIES = (b"", b"0", b"x", b"\xff\xfe", b"9" * 5000, b"{}", b'{"a":' * 900, b"a=b&c=%ff")
_QUERIES = {
    "tailLines": _NUMBERS,
    "tail": (*_NUMBERS, "all"),
    "sinceSeconds": _NUMBERS,
    "limitBytes": _NUMBERS,
    "sinceTime": _TIMES,
    "stream": ("All", "Stdout", "Stderr", "x"),
    "timestamps": ("true", "1", "x"),
    "previous": ("true", "False"),
    "follow": ("true",),
    "only_cpu_and_memory": ("true", "x"),
    "port": (*_NUMBERS, "80", "80,81", "70000"),
    "command": ("ls",),
    **dict.fromkeys(("input", "output", "error", "tty"), ("1", "0", "x")),
    "exclude": ("ping", "lease"),
    "verbose": ("",),
    "timeout": _NUMBERS,
    "query": ("kubelet",),
    "debug": ("2", "9" * 5000),
}


@dataclass(frozen=True)
class Door:
    """A port, and how somebody comes to it."""

    name: str
    port: int
    tls: ssl.SSLContext | None = None
    tokens: Sequence[str] = ("garbage",)
    share: float = 1.0  # of all requests


@dataclass
class Findings:
    """What the servers said."""

    sent: int = 0
    unanswered: list[bytes] = field(default_factory=list)  # whole requests on a new connection
    statuses: Counter[str] = field(default_factory=Counter)  # `-` for a connection that ended without an answer
    deliberate: Counter[str] = field(default_factory=Counter)  # 5xx of which a kubelet has the same
    failures: list[tuple[str, bytes, bytes]] = field(
        default_factory=list
    )  # door, request and answer of every other 5xx


class _Request(NamedTuple):
    data: bytes
    is_whole: bool  # whether the connection can be used again


class Fuzzer:
    """Makes requests, of which no two runs with one seed differ."""

    def __init__(self, seed: int, *, pod: tuple[str, str, str] = ("ns", "pod", "c")) -> None:
        self._chance = random.Random(seed)  # noqa: S311  the same in every run
        self._pod = pod
        self._is_wild = False  # whether the request may be no HTTP; the others come as far as the handlers

    def request(self, tokens: Sequence[str]) -> _Request:
        """One request: good in most places, and anything in some."""
        pick, hit = self._chance.choice, self._hit
        self._is_wild = hit(0.4)
        method, target = pick(_METHODS if self._is_wild else _KNOWN_METHODS), self._target()
        headers, body, is_whole = self._headers(tokens), b"", True
        if target.startswith("/logs/") and hit(0.5):
            headers.append(pick((f"Range: {self._one(_RANGES)}", f"If-Modified-Since: {self._one(_DATES)}")))
        if hit(0.3):
            body, framing, is_whole = self._body()
            headers += framing
        self._chance.shuffle(headers)
        version = pick(("HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "x")) if self._is_wild and hit(0.1) else "HTTP/1.1"
        line = f"{method} {target} {version}"
        data = _bytes("\r\n".join([line, *headers, "", ""])) + body
        if self._is_wild and hit(0.4):
            data, is_whole = self._damaged(data), False
        is_plain = not any(header.startswith(("Upgrade", "Expect")) for header in headers)
        return _Request(data, is_whole and is_plain and line.endswith("1.1") and method in {"GET", "POST", "PUT"})

    def _hit(self, share: float) -> bool:
        return self._chance.random() < share

    def _one(self, values: Sequence[str], *, within: str = " ~") -> str:
        """One of the values; if the request is to be HTTP, without what no parser would let in."""
        chosen, (least, most) = self._chance.choice(values), within
        if self._is_wild:
            return chosen
        return "".join(char for char in chosen if least <= char <= most or (least == " " and char >= "\x80"))

    def _name(self) -> str:
        return self._one(_NAMES, within="!~")

    def _word(self) -> str:
        return self._one(_WORDS)

    def _target(self) -> str:
        pick = self._chance.choice
        pod = "/".join(part if self._hit(0.7) else self._name() for part in self._pod)
        uid = f"{'/'.join(self._pod[:2])}/{self._name()}/{self._pod[2]}"
        odd = ("*", "n:80", "", "http://[::1/pods", "https://n:x/", self._name(), f"//{self._name()}")
        if self._is_wild and self._hit(0.2):
            return pick(odd)
        paths = (
            *("/", "/pods", "/runningpods/", "/healthz", "/healthz/ping", "/healthz/lease", "/configz", "/flagz"),
            *("/statusz", "/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/metrics/slis"),
            *("/stats/summary", "/stats/", f"/containerLogs/{pod}", f"/exec/{pod}", f"/attach/{pod}", f"/run/{pod}"),
            *(f"/containerLogs/{pod}", f"/portForward/{'/'.join(pod.split('/')[:2])}", f"/checkpoint/{pod}"),
            *(f"/exec/{uid}", f"/portForward/{uid}", "/logs/", "/logs/a.log", f"/logs/{self._name()}", "/logs/a.log"),
            *(f"/logs/{self._name()}/{self._name()}", "/debug/pprof/cmdline", f"/debug/pprof/{self._name()}"),
            *(
                "/debug/flags/v",
                "/debug/pprof/goroutine",
                f"/{self._name()}",
                f"/metrics/{self._name()}",
                "http://n/pods",
            ),
        )
        path = pick(paths)
        if self._hit(0.5):
            names = self._chance.choices(list(_QUERIES), k=self._chance.randint(1, 4))
            path += "?" + "&".join(
                f"{name}={self._one(_QUERIES[name] if self._hit(0.8) else _WORDS, within='!~')}" for name in names
            )
        return f"{path}{pick('?#')}{self._one(_WORDS, within='!~')}" if self._hit(0.1) else path

    def _headers(self, tokens: Sequence[str]) -> list[str]:
        pick, hit = self._chance.choice, self._hit
        headers = [f"Host: {'127.0.0.1' if hit(0.8) else self._one(_HOSTS)}"] if hit(0.97) else []
        if hit(0.7):
            headers.append(f"Authorization: {self._authorization(tokens)}")
        if hit(0.2):
            headers += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Protocol: {self._one(_PROTOCOLS)}"]
            headers += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"] if hit(0.7) else []
        elif hit(0.1):
            headers += [pick(("Upgrade: SPDY/3.1", "Upgrade: h2c", "Upgrade: TLS/1.3", f"Upgrade: {self._word()}"))]
            headers += ["Connection: Upgrade"] if hit(0.7) else []
        others = {
            "If-Modified-Since": _DATES,
            "If-Unmodified-Since": _DATES,
            "If-Range": _DATES,
            "If-None-Match": ("*", '"x"', "\xff"),
            "Range": _RANGES,
            "Accept": ("*/*", "application/json", "text/html", "", ";;;", "*/*;q=\xff", "a/b," * 500),
            "Accept-Encoding": ("gzip", "br;q=x", "\xff"),
            "Cookie": ("a=b", "\xff=\xff", "=" * 999, f"a=\t{MARK}"),
            "Connection": ("close", "keep-alive", "x", "\xff"),
            "Expect": ("100-continue", "200-ok", "\xff"),
            "X-Forwarded-For": ("127.0.0.1", "\xff"),
            "Content-Type": ("application/json", "\xff", "multipart/form-data; boundary=\xff"),
            "Sec-WebSocket-Protocol": _PROTOCOLS,
            "TE": ("gzip, chunked", "trailers"),
            "Max-Forwards": _NUMBERS,
        }
        for name in self._chance.choices(list(others), k=self._chance.randint(0, 4)):
            headers.append(f"{name}: {self._one(others[name] if hit(0.85) else _WORDS)}")
        if self._is_wild and hit(0.05):
            headers += [f"X-{index}: {self._word()}" for index in range(pick((3, 63, 64, 65, 200)))]
        if self._is_wild and hit(0.05):
            headers.append(f"X-Long: {'z' * pick((8_000, 16_000, 17_000, 70_000))}")
        return headers

    def _authorization(self, tokens: Sequence[str]) -> str:
        pick = self._chance.choice
        if self._hit(0.8):
            return f"Bearer {pick(tokens)}"
        return self._one((*_AUTHORIZATIONS, f"Bearer {self._word()}", f"Bearer {pick(tokens)}\xff", self._word()))

    def _body(self) -> tuple[bytes, list[str], bool]:
        """A body, the headers that announce it, and whether they tell the truth."""
        pick = self._chance.choice
        content = pick(_BODIES) if self._hit(0.9) else self._chance.randbytes(self._chance.randint(1, 3000))
        match self._chance.randrange(8 if self._is_wild else 4):
            case 0 | 1 | 2:
                return content, [f"Content-Length: {len(content)}"], True
            case 3:
                last = b"0\r\n\r\n"
                chunks = b"%x\r\n%s\r\n" % (len(content), content) + last if content else last
                return chunks, ["Transfer-Encoding: chunked"], True
            case 4:
                return pick(_CHUNK_SIZES) + b"\r\n" + content + b"\r\n0\r\n\r\n", ["Transfer-Encoding: chunked"], False
            case 5:
                return content, [f"Content-Length: {pick(_NUMBERS)}"], False
            case 6:
                return content, [f"Transfer-Encoding: {pick(_CODINGS)}"], False
            case _:
                length = f"Content-Length: {len(content)}"
                return content, [length, pick(("Content-Length: 1", "Transfer-Encoding: chunked"))], False

    def _damaged(self, data: bytes) -> bytes:
        """The same with bytes changed, lost, repeated or put in."""
        hurt = bytearray(data)
        for _ in range(self._chance.randint(1, 4)):
            at = self._chance.randrange(len(hurt))
            match self._chance.randrange(5):
                case 0:
                    hurt[at] = self._chance.randrange(256)
                case 1:
                    del hurt[at : at + self._chance.randint(1, 9)]
                case 2:
                    hurt[at:at] = self._chance.randbytes(self._chance.randint(1, 9))
                case 3:
                    hurt[at:at] = hurt[at : at + 20] * self._chance.randint(1, 30)
                case _:
                    hurt[at:at] = self._chance.choice(
                        (b"\n", b"\r", b"\0", b"\x1b[0m", b"\xff", b"\r\n", b"\r\n\r\n", b" ")
                    )
            hurt = hurt or bytearray(b"x")
        return bytes(hurt)


async def fuzz(door: Door, count: int, fuzzer: Fuzzer, findings: Findings, *, at_once: int = 16) -> None:
    """Send so many requests to a door, on few connections at a time, and write down what comes back."""
    left = iter(range(count))

    async def caller() -> None:
        connection = _Connection(door, findings)
        try:
            for _ in left:
                await connection.ask(fuzzer.request(door.tokens))
        finally:
            connection.close()

    await asyncio.gather(*(caller() for _ in range(at_once)))


class _Connection:
    """Somebody who calls again and again, on the same connection as long as it makes sense."""

    def __init__(self, door: Door, findings: Findings) -> None:
        self._door, self._findings = door, findings
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._asked = 0

    async def ask(self, request: _Request) -> None:
        """Send one request, and read as much of the answer as it takes to judge it."""
        self._findings.sent += 1
        status, body, can_go_on, is_new = "-", b"", False, self._streams is None
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
            async with asyncio.timeout(_LONG_PATIENCE_SECONDS if request.is_whole else _PATIENCE_SECONDS):
                reader, writer = await self._opened()
                writer.write(request.data)
                head = await reader.readuntil(b"\r\n\r\n")
                while head.startswith(b"HTTP/1.1 100 "):
                    head = await reader.readuntil(b"\r\n\r\n")
                status = head[9:12].decode(errors="replace")
                body, is_read = await _body(reader, head)
                can_go_on = request.is_whole and is_read and status != "400" and b"\nConnection: close" not in head
        if status == "-" and request.is_whole and is_new:
            self._findings.unanswered.append(request.data[:2000])
        self._note(status, request.data, body)
        self._asked += 1
        if not can_go_on or self._asked > _MOST_ON_A_CONNECTION:
            self.close()

    def close(self) -> None:
        """Hang up."""
        if self._streams:
            self._streams[1].transport.abort()
        self._streams, self._asked = None, 0

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._door.port, ssl=self._door.tls)
        return self._streams

    def _note(self, status: str, request: bytes, body: bytes) -> None:
        self._findings.statuses[status] += 1
        if status.startswith("5") and (meant := _DELIBERATE.search(body)):
            self._findings.deliberate[f"{status} {meant[0].decode()}"] += 1
        elif status.startswith("5"):
            self._findings.failures.append((self._door.name, request[:2000], body[:500]))


async def _body(reader: asyncio.StreamReader, head: bytes) -> tuple[bytes, bool]:
    """The body, and whether that is all of it."""
    length = re.search(rb"\ncontent-length: (\d+)", head, re.IGNORECASE)
    if length is None or int(length[1]) > _MOST_BODY_BYTES:
        return b"", False
    return await reader.readexactly(int(length[1])), True


def _bytes(text: str) -> bytes:
    """Text as it goes over the wire: Latin-1 where that is enough, so that there are bytes that are no UTF-8."""
    with suppress(UnicodeEncodeError):
        return text.encode("latin-1")
    return text.encode(errors="surrogateescape")


def hidden(token: str) -> str:
    """A token as a WebSocket brings it."""
    return _TOKEN + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
