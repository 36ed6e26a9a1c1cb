"""Accepts connections, and never more than a few whose callers have not said yet who they are."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

MAX_STRANGERS = 128
_HANDSHAKE_SECONDS = 10.0
_RETRY_SECONDS = 0.1


class Listener:
    """Hands connections to the server. A connection is a stranger's until `trust` is called for it."""

    def __init__(self, server: web.Server, host: str, port: int, ssl_context: ssl.SSLContext | None) -> None:
        self._server = server
        self._ssl_context = ssl_context
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setblocking(False)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._strangers: OrderedDict[asyncio.BaseProtocol, socket.socket] = OrderedDict()
        self.port: int = self._socket.getsockname()[1]

    async def run(self) -> None:
        """Accept connections for ever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except OSError:  # no file descriptor is left, or the caller is gone already
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            task = loop.create_task(self._open(connection))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def trust(self, protocol: asyncio.BaseProtocol) -> None:
        """Keep this connection for as long as its caller wants: he has shown the token."""
        self._strangers.pop(protocol, None)

    def close(self) -> None:
        """Accept nothing any more."""
        self._socket.close()
        for task in self._handshakes:
            task.cancel()

    async def _open(self, connection: socket.socket) -> None:
        protocol = self._server()
        self._strangers[protocol] = connection
        if len(self._strangers) > MAX_STRANGERS:  # those that have ended count too, until they are the oldest
            _, oldest = self._strangers.popitem(last=False)
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        limits = {"ssl_handshake_timeout": _HANDSHAKE_SECONDS} if self._ssl_context else {}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, connection, ssl=self._ssl_context, **limits
            )
        except OSError:  # it has ended, or does not speak TLS
            connection.close()
