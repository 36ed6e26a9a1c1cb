"""Requests that no client would send, and connections that say nothing; the same ones in every run."""

import asyncio
import random
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.cluster.api import unchecked_tls
from tests.cluster.pairs import client_pair

_SEEDS = (
    b"GET /healthz HTTP/1.1\r\nHost: n\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: n\r\nAuthorization: Bearer x\r\nAccept: text/plain\r\n\r\n",
    b"POST /exec/ns/pod/c?command=ls&output=1 HTTP/1.1\r\nHost: n\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n",
    b"PUT /debug/flags/v HTTP/1.1\r\nHost: n\r\nContent-Length: 1\r\n\r\n2",
    b"POST /run/ns/p/c HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"GET /logs/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: n\r\nRange: bytes=0-1\r\n\r\n",
)
PATIENCE_SECONDS = 0.5  # for what a server goes on to wait for the rest of
_TEXT_NAMES = (0x81, 0x82, 0x86)  # tags of an e-mail address, a DNS name, a URI: ASCII, if it were not for us
_ODD = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET http://[::1 HTTP/1.1\r\nHost: n\r\n\r\n",
    b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: n\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: n\r\nX: " + b"z" * 40_000 + b"\r\n\r\n",
    b"POST /pods HTTP/1.1\r\nHost: n\r\nContent-Length: -1\r\n\r\n",
    b"POST /pods HTTP/1.1\r\nHost: n\r\nContent-Length: 99999999999\r\n\r\nx",
    b"POST /pods HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
    b"POST /pods HTTP/1.1\r\nHost: n\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
    b"GET /pods HTTP/1.1\r\nHost: n\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\r\n" * 100,
    b"\0" * 512,
)


def requests(count: int, seed: int = 8) -> Iterator[bytes]:
    """So many of them: odd ones, and good ones that something has happened to."""
    chance = random.Random(seed)  # noqa: S311  the same in every run
    for _ in range(count):
        if chance.random() < 0.2:
            yield chance.choice(_ODD)
            continue
        data = bytearray(chance.choice(_SEEDS))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randint(1, 9)]
                case 2:
                    data[at:at] = chance.randbytes(chance.randint(1, 9))
                case _:
                    data[at:at] = data[at : at + 20] * chance.randint(1, 30)
            data = data or bytearray(b"x")
        yield bytes(data)


def strangers(folder: Path, count: int, seed: int = 10) -> Iterator[ssl.SSLContext]:
    """Clients whose certificates nobody has signed, with names in them that are no text."""
    chance = random.Random(seed)  # noqa: S311  the same in every run
    for index in range(count):
        junk = b"\xff" + chance.randbytes(chance.randint(0, 20))
        name = bytes([chance.choice(_TEXT_NAMES), len(junk)]) + junk
        names = bytes([0x30, len(name)]) + name if index else b"\x30\x00"
        yield stranger(*client_pair("stranger", alternative_names=names).write(folder, f"stranger-{index}"))


def stranger(*certificate: Path) -> ssl.SSLContext:
    """Somebody who trusts every server, with a certificate and its key or without."""
    context = unchecked_tls()
    if certificate:
        context.load_cert_chain(*certificate)
    return context


async def throw(
    port: int,
    thrown: Iterator[bytes],
    *,
    tls: ssl.SSLContext | None = None,
    at_once: int = 32,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:
    """Send each on a connection of its own; how many of them the server has answered, or ended."""

    async def thrower() -> int:
        heard = 0
        for data in thrown:
            with suppress(TimeoutError, ConnectionRefusedError):
                await _throw_one(port, data, tls, patience_seconds)
                heard += 1
        return heard

    return sum(await asyncio.gather(*(thrower() for _ in range(at_once))))


async def _throw_one(port: int, data: bytes, tls: ssl.SSLContext | None, patience_seconds: float) -> None:
    writer = None
    try:
        async with asyncio.timeout(patience_seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            writer.write(data)
            if not tls:
                with suppress(OSError):  # the server may have reset it already
                    writer.write_eof()
            await reader.read(200)
    except (ConnectionResetError, BrokenPipeError, ssl.SSLError):
        return  # a way to say no
    finally:
        if writer:
            writer.transport.abort()


async def dawdle(port: int, count: int, *, tls: ssl.SSLContext | None = None) -> None:
    """Slowloris: so many connections that send a letter of a header each second, and come back when sent away."""

    async def dawdler() -> None:
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
                try:
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: ")
                    while not writer.is_closing():
                        await asyncio.sleep(1)
                        writer.write(b"n")
                        await writer.drain()
                finally:
                    writer.transport.abort()
            await asyncio.sleep(5)

    await asyncio.gather(*(dawdler() for _ in range(count)))
