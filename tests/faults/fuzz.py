"""An HTTP proxy before a real API server whose answers may be anything."""

import copy
import random
import ssl
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

_STATUSES = (200, 200, 200, 201, 302, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504)
_REASONS = ("AlreadyExists", "Conflict", "NotFound", "Expired", "", 7, None)
_VALUES: tuple[Any, ...] = (None, True, -1, 3.5, 10**30, "", "x", "9" * 40, [], [None], {}, {"a": []}, [[["deep"]]])
_HUGE = b'{"metadata": {"name": "' + b"x" * (9 * 2**20) + b'"}}'


class FuzzProxy:
    """Passes requests on; while `wild`, most answers are made up from those of earlier ones."""

    def __init__(self, upstream: str, tls: ssl.SSLContext, seed: int) -> None:
        self.wild = False
        self.nonsense = 0  # answers so far that were made up
        self.asks_for_time = True  # whether they ask to be left alone for a while
        self._upstream, self._tls = upstream, tls
        self._chance = random.Random(seed)  # noqa: S311
        self._known: list[bytes] = [b"{}"]
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        assert self._runner
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def start(self) -> None:
        """Listen."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._tls))
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
        if self.wild and self._chance.random() < 0.9:
            self.nonsense += 1
            return await self._nonsense(request)
        if "watch" in request.query:
            return await self._watch(request)
        status, body = await self._truth(request)
        if status < 300 and len(self._known) < 50:
            self._known.append(body)
        return web.Response(status=status, body=body, content_type="application/json")

    async def _truth(self, request: web.Request) -> tuple[int, bytes]:
        assert self._session
        url, content_type = f"{self._upstream}{request.path_qs}", request.headers["Content-Type"]
        sent = {"data": await request.read(), "headers": {"Content-Type": content_type}}
        async with self._session.request(request.method, url, **sent) as answer:  # type: ignore[arg-type]
            return answer.status, await answer.read()

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        assert self._session
        response = web.StreamResponse()
        await response.prepare(request)
        async with self._session.get(f"{self._upstream}{request.path_qs}") as answer:
            async for part in answer.content.iter_any():
                if self.wild:
                    break
                await response.write(part)
        return response

    async def _nonsense(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await self._wild_watch(request)
        kinds: tuple[Callable[[], bytes], ...] = (
            self._truncated,
            self._mutated,
            self._mutated,
            self._mutated,
            self._other,
            self._refusal,
            lambda: self._chance.randbytes(200),
            lambda: b"",
            lambda: b"<html>502</html>",
            lambda: b"[" * 50_000,
            lambda: msgspec.json.encode(self._chance.choice(_VALUES[:9])),
        )
        body = _HUGE if self._chance.random() < 0.003 else self._chance.choice(kinds)()
        headers = {"Location": "http://127.0.0.1:1/"}
        if self.asks_for_time:
            headers["Retry-After"] = self._chance.choice(("1", "0", "99999999999", "-1", "soon", "²"))
        if self._chance.random() < 0.02:
            headers["Content-Encoding"] = "gzip"
        if self._chance.random() < 0.05 and request.transport:
            request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + body[:100])
            request.transport.close()
        return web.Response(status=self._chance.choice(_STATUSES), body=body, headers=headers)

    async def _wild_watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=self._chance.choice((200, 200, 200, 403, 410, 500)))
        await response.prepare(request)
        for _ in range(self._chance.randrange(4)):
            kind = self._chance.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "?", 5))
            event = {"type": kind, "object": msgspec.json.decode(self._chance.choice(self._known))}
            line = self._mutated_from(event) if self._chance.random() < 0.5 else msgspec.json.encode(event)
            await response.write((line if self._chance.random() < 0.8 else line[:50]) + b"\n")
        return response

    def _truncated(self) -> bytes:
        body = self._other()
        return body[: self._chance.randrange(len(body))]

    def _other(self) -> bytes:
        return self._chance.choice(self._known)

    def _mutated(self) -> bytes:
        return self._mutated_from(msgspec.json.decode(self._other()))

    def _refusal(self) -> bytes:
        refusal = {"kind": "Status", "reason": self._chance.choice(_REASONS), "message": self._chance.choice(_VALUES)}
        return msgspec.json.encode(refusal)

    def _mutated_from(self, answer: Any) -> bytes:
        for _ in range(self._chance.randrange(1, 5)):
            self._hurt(answer)
        return msgspec.json.encode(answer)

    def _hurt(self, part: Any) -> None:
        """Put something else in one place."""
        while isinstance(part, dict | list) and part:
            key = self._chance.choice(list(part) if isinstance(part, dict) else range(len(part)))
            if not isinstance(part[key], dict | list) or self._chance.random() < 0.3:
                part[key] = copy.deepcopy(self._chance.choice(_VALUES))
                return
            part = part[key]
