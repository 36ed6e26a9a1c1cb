"""An HTTP proxy before a real API server that lies: every second answer is mutated, made up, or no HTTP at all.

It never lies more than three times in a row about the same thing, so who tries again gets through.
"""

import asyncio
import random
import ssl
import zlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

import aiohttp
from aiohttp import web
from msgspec import DecodeError, json

from tests.faults.mutations import FRAGMENTS, Mutations

_LIES = 0.6  # of all answers
_IN_A_ROW = 3
_STATUSES = (200, 200, 200, 201, 302, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504)
_REASONS = ("AlreadyExists", "Conflict", "NotFound", "Expired", "", 7, None)
_PATIENCE = ("1", "0", "-1", "soon", "²", "1e9", "Fri, 31 Dec 9999 23:59:59 GMT", " 1", "")
_OK = b"HTTP/1.1 200 OK\r\n"
_BOMB = zlib.compressobj(wbits=31)
_GZIP = b"".join(_BOMB.compress(bytes(2**20)) for _ in range(200)) + _BOMB.flush()
RAW = (
    b"",
    b"\0" * 1000,
    b"<html>",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 99999 OK\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\n\r\n",
    b"HTTP/1.1 200 \x1b[31m\xff\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + b"x" * 1_000_000,
    b"HTTP/1.1 100 Continue\r\n\r\n" * 50_000,
    _OK + b"Content-Length: 5000\r\n\r\n{",
    _OK + b"Content-Length: -5\r\n\r\n",
    _OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    _OK + "Content-Length: ٣\r\n\r\n{} ".encode(),
    _OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    _OK + b"X-A: b\r\n" * 100_000,
    _OK + b"X-A: " + b"b" * 1_000_000,
    _OK + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    _OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * 40 + b"\r\n{}",
    _OK + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 1_000_000,
    _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    _OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_GZIP) + _GZIP,
    (_OK + b"Content-Length: 2\r\n\r\n{}") * 20_000,
)


class FuzzProxy:
    """Passes requests on; while `wild`, it lies."""

    def __init__(self, upstream: str, tls: ssl.SSLContext, seed: int) -> None:
        self.wild = False
        self.lies = 0  # answers, and events of watches, that were not the API server's
        self.kinds: Counter[str] = Counter()  # of the lies
        self.renewals: dict[str, list[datetime]] = defaultdict(list)  # of each lease, as the API server accepted them
        self._upstream, self._tls = upstream, tls
        self._chance = random.Random(seed)  # noqa: S311
        self._known: dict[str, list[bytes]] = defaultdict(list)  # truths of each path
        self._in_a_row: Counter[str] = Counter()
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._runner
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def start(self) -> None:
        """Listen."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._tls, limit=0))
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{any:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()

    async def stop(self) -> None:
        """Stop."""
        assert self._runner
        assert self._session
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        about = f"{request.method} {request.path}"
        is_lie = self.wild and self._in_a_row[about] < _IN_A_ROW and self._chance.random() < _LIES
        self._in_a_row[about] = self._in_a_row[about] + 1 if is_lie else 0
        if "watch" in request.query:
            return await (self._false_watch(request) if is_lie else self._watch(request))
        if not is_lie:
            status, body = await self._truth(request)
            return web.Response(status=status, body=body, content_type="application/json")
        self.lies += 1
        ways: tuple[Callable[[web.Request], Awaitable[web.StreamResponse]], ...] = (
            self._mutated,
            self._mutated,
            self._mutated,
            self._mutated,
            self._made_up,
            self._made_up,
            self._raw,
            self._endless,
        )
        way = self._chance.choices(ways, weights=(20, 20, 20, 10, 10, 10, 8, 2))[0]
        self.kinds[way.__name__.strip("_")] += 1
        return await way(request)

    async def _truth(self, request: web.Request) -> tuple[int, bytes]:
        assert self._session
        headers = {"Content-Type": request.headers["Content-Type"]}
        sent = await request.read()
        url = f"{self._upstream}{request.path_qs}"
        async with self._session.request(request.method, url, data=sent, headers=headers) as answer:
            body = await answer.read()
        known = self._known[request.path]
        if answer.status < 300 and len(known) < 20:
            known.append(body)
        if answer.status < 300 and "/leases" in request.path and request.method in {"PUT", "POST"}:
            lease = json.decode(body)
            self.renewals[lease["metadata"]["name"]].append(datetime.fromisoformat(lease["spec"]["renewTime"]))
        return answer.status, body

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        assert self._session
        response = web.StreamResponse()
        await response.prepare(request)
        until = asyncio.get_running_loop().time() + self._chance.uniform(1, 5)
        async with self._session.get(f"{self._upstream}{request.path_qs}") as answer:
            with suppress(TimeoutError):
                while not self.wild or (left := until - asyncio.get_running_loop().time()) > 0:
                    async with asyncio.timeout(left if self.wild else 1.0):
                        part = await answer.content.readany()
                    if not part:
                        break
                    await response.write(part)
                    known = self._known[request.path]
                    if part.count(b"\n") == 1 and len(known) < 20:
                        known.append(part)
        return response

    async def _mutated(self, request: web.Request) -> web.StreamResponse:
        """What was asked for is done, but what is said of it is not quite so."""
        status, body = await self._truth(request)
        return web.Response(status=status, body=self._hurt(body), content_type="application/json")

    async def _made_up(self, request: web.Request) -> web.StreamResponse:
        """Nothing is done, and anything is said."""
        refusal = {"kind": "Status", "reason": self._chance.choice(_REASONS), "message": "no\n\x1b[31m", "code": 409}
        bodies = (
            lambda: self._hurt(json.encode(refusal)),
            lambda: json.encode(refusal),
            lambda: self._chance.choice([b"{}", *self._known[request.path]]),
            lambda: self._hurt(self._chance.choice([b'{"metadata": {}}', *self._known[request.path]])),
            lambda: bytes(self._chance.choice(FRAGMENTS)),
            lambda: self._chance.randbytes(200),
            lambda: b"[" + b"{}," * 400_000 + b"{}]",
            lambda: b'{"metadata": {"name": "' + b"x" * (3 * 2**20) + b'"}}',
        )
        body = self._chance.choices(bodies, weights=(4, 4, 4, 4, 2, 2, 0.2, 0.2))[0]()
        headers = {"Location": "http://127.0.0.1:1/", "Retry-After": self._chance.choice(_PATIENCE)}
        return web.Response(status=self._chance.choice(_STATUSES), body=body, headers=headers)

    async def _raw(self, request: web.Request) -> web.StreamResponse:
        """What comes is no HTTP, or more of it than anybody asked for."""
        if request.transport:
            request.transport.write(self._chance.choice(RAW))
            await asyncio.sleep(self._chance.choice((0.0, 0.05)))
            request.transport.close()
        return web.Response()

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        """An answer that only the asker can end."""
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(400):
                await response.write(b" " * 65536)
        return response

    async def _false_watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=self._chance.choice((200, 200, 200, 200, 403, 410, 500)))
        await response.prepare(request)
        bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}\n'
        with suppress(ConnectionError):
            if self._chance.random() < 0.1:
                self.kinds["flood"] += 1
                await response.write(bookmark * 20_000)
            for _ in range(self._chance.randrange(20)):
                self.lies += 1
                self.kinds["event"] += 1
                lines = [bookmark, *(line for line in self._known[request.path] if line.startswith(b'{"type"'))]
                line = self._chance.choice(lines)
                await response.write(self._hurt(line.strip()) + b"\n")
                await asyncio.sleep(0.01)
        return response

    def _hurt(self, body: bytes) -> bytes:
        try:
            truth = json.decode(body)
        except DecodeError:
            return body[:-1]
        return Mutations(truth, self._chance).any() if isinstance(truth, dict) and truth else b"null"
