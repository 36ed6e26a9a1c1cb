"""Somebody who answers in the place of an API server, and not as one."""

import gzip
import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.cluster.pairs import client_pair

Parts = Iterator[bytes]
_LOOPBACK = b"\x30\x06\x87\x04\x7f\x00\x00\x01"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def endless() -> Parts:
    """A body that never ends."""
    return itertools.chain([_HEAD + b"\r\n"], itertools.repeat(b" " * 2**16))


def endless_chunks() -> Parts:
    """The same in chunks."""
    chunk = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    return itertools.chain([_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"], itertools.repeat(chunk))


def bomb() -> Parts:
    """4 GiB of zeros in 4 MiB of gzip: members one after another are one text."""
    member = gzip.compress(bytes(2**26), 9)
    head = _HEAD + f"Content-Encoding: gzip\r\nContent-Length: {64 * len(member)}\r\n\r\n".encode()
    return itertools.chain([head], itertools.repeat(member, 64))


def drip() -> Parts:
    """A body that comes byte by byte."""
    return itertools.chain([_HEAD + b"\r\n"], _slowly(b" "))


def head_drip() -> Parts:
    """A head that comes byte by byte, and never ends."""
    return itertools.chain([_HEAD + b"X: "], _slowly(b"x"))


def not_yet() -> Parts:
    """An answer that is always about to come."""
    return itertools.chain(_slowly(b"HTTP/1.1 100 Continue\r\n\r\n"))


def elsewhere() -> Parts:
    """A way to somebody else."""
    return iter([b"HTTP/1.1 307 X\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"])


def _slowly(part: bytes) -> Parts:
    while True:
        time.sleep(0.2)
        yield part


class Rogue:
    """A TLS server on loopback that answers everybody with the same, and remembers what it was told."""

    def __init__(self, folder: Path, answer: Callable[[], Parts] = elsewhere) -> None:
        self.heads: list[str] = []
        rogue = self

        class Handler(BaseHTTPRequestHandler):
            def parse_request(self) -> bool:
                is_request = super().parse_request()
                rogue.heads.append(f"{self.requestline}\n{self.headers}")
                return is_request

            def do_GET(self) -> None:
                self.close_connection = True
                try:
                    for part in answer():
                        self.connection.sendall(part)
                except OSError:  # who asked has gone
                    return

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = client_pair("rogue", usage=ExtendedKeyUsageOID.SERVER_AUTH, alternative_names=_LOOPBACK)
        context.load_cert_chain(*pair.write(folder, "rogue"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
