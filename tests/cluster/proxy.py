"""A TCP proxy that misbehaves on demand, in a thread of its own; it needs no root and sees no plain text.

`python -m tests.cluster.proxy FROM_PORT TO_PORT` is a way to an API server that ends when it is killed.
"""

import asyncio
import random
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

_CHUNK_BYTES = 65536


@dataclass
class Weather:
    """What happens to whoever comes through; the default is nothing."""

    refuse: bool = False  # connections are reset as soon as they are made
    silent: bool = False  # a black hole: nothing is read, nothing is answered, nothing is closed
    cut_answers: bool = False  # requests go through, their connection dies before the answer
    delay_seconds: float = 0.0  # for each chunk
    loss: float = 0.0  # the chance that a connection dies with a chunk


class FaultProxy:
    """Listens on a loopback port and passes everything on to another, as well as the weather lets it."""

    def __init__(self, target_port: int, port: int = 0, *, listener: socket.socket | None = None) -> None:
        self.port = port
        self.weather = Weather()
        self.attempts = 0
        self._target_port = target_port
        self._listener = listener  # one that is there already, in another network perhaps
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._live: set[asyncio.StreamWriter] = set()
        self._impostors: list[asyncio.Server] = []
        self._chance = random.Random()  # noqa: S311  not everybody's: hypothesis watches that one
        self._calm = asyncio.Event()
        self._calm.set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def set(self, *, kill: bool = False, target_port: int | None = None, **weather: Any) -> None:
        """Change the weather; with `kill`, connections that are open die with a reset."""
        self.weather = Weather(**weather)
        self._target_port = target_port or self._target_port
        if kill:
            self._loop.call_soon_threadsafe(self._kill)
        self._loop.call_soon_threadsafe(self._calm.clear if self.weather.silent else self._calm.set)

    def impostor(self, certificate: Path, key: Path) -> int:
        """The port of a TLS server that is not the one it should be."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        started = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(_hang_up, "127.0.0.1", 0, ssl=context), self._loop
        )
        self._impostors.append(started.result(10))
        port: int = self._impostors[-1].sockets[0].getsockname()[1]
        return port

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _start(self) -> None:
        listener = self._listener or socket.create_server(("127.0.0.1", self.port))
        self._server = await asyncio.start_server(self._serve, sock=listener)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        for server in (self._server, *self._impostors):
            if server:
                server.close()
        self._kill()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _kill(self) -> None:
        for writer in tuple(self._live):
            _reset(writer)
        self._live.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.attempts += 1
        self._live.add(writer)
        try:
            await self._calm.wait()
            if self.weather.refuse:
                _reset(writer)
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._live.add(back)
            await asyncio.gather(self._pump(reader, back, answer=False), self._pump(there, writer, answer=True))
        except OSError:
            _reset(writer)
        finally:
            self._live.discard(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answer: bool) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                await self._calm.wait()
                await asyncio.sleep(self.weather.delay_seconds)
                if (answer and self.weather.cut_answers) or self._chance.random() < self.weather.loss:
                    self._kill()
                writer.write(chunk)
                await writer.drain()
        with suppress(OSError):
            writer.close()


def through(port: int, kubeconfig: Path, target: Path, **user: Any) -> Path:
    """A copy of a kubeconfig that leads through a proxy, perhaps as another user."""
    document = yaml.safe_load(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    if user:
        document["users"][0]["user"] = user
    target.write_text(yaml.safe_dump(document))
    target.chmod(0o600)
    return target


async def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset instead of a farewell."""
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


if __name__ == "__main__":
    with FaultProxy(int(sys.argv[2]), int(sys.argv[1])):
        threading.Event().wait()
