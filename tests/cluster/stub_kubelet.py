"""A server in the place of a node's kubelet: it shows what an API server sends there, and answers as it is told."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

import psutil

from agent.cli.demo import make_tls

_END = b"end"


class Received(NamedTuple):
    """One request."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    body: bytes


class StubKubelet:
    """Answers each path with a status and a text, 200 by default; echoes what comes after an upgrade, until `end`."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: dict[str, tuple[int, str]] = {}
        self.sequences: dict[str, Iterator[str]] = {}  # texts that a path answers with, one after the other
        self.released = threading.Event()  # an answer with `…` waits for it at that place
        self.echoing = 0  # upgraded connections
        self.address = machine_address()
        self._server = ThreadingHTTPServer((self.address, 0), self._handler())
        self._server.daemon_threads = True
        context, _ = asyncio.run(make_tls(self.address))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def node(self, name: str) -> dict[str, Any]:
        """A Node whose kubelet this is."""
        status = {
            "addresses": [{"type": "InternalIP", "address": self.address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }
        return {"metadata": {"name": name}, "status": status}

    def _handler(stub) -> type[BaseHTTPRequestHandler]:  # noqa: N805  `self` is a request's below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                target = urlsplit(self.path)
                query = parse_qsl(target.query, keep_blank_values=True)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                stub.received.append(Received(self.command, target.path, query, self.headers, body))
                status, text = stub.answers.get(target.path, (200, "ok"))
                if target.path in stub.sequences:
                    text = next(stub.sequences[target.path])
                if "Upgrade" in self.headers and target.path not in stub.answers:
                    self._echo()
                else:
                    self._answer(status, text)

            do_GET = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815

            def _answer(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(text.replace("…", "").encode())))
                self.end_headers()
                now, _, later = text.partition("…")
                self.wfile.write(now.encode())
                if later:
                    self.wfile.flush()
                    stub.released.wait(60)
                    self.wfile.write(later.encode())

            def _echo(self) -> None:
                self.send_response(101)
                self.send_header("Connection", "Upgrade")
                self.send_header("Upgrade", self.headers["Upgrade"])
                self.end_headers()
                self.close_connection = True
                data = b""
                stub.echoing += 1
                while data != _END and (data := self.rfile.read1(1024)):
                    self.wfile.write(data)
                stub.echoing -= 1

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as the base class has it
                """Print nothing."""

        return Handler


def machine_address() -> str:
    """An address of this machine that is not loopback, to which API servers pass nothing on."""
    of_interfaces = [found for name, found in psutil.net_if_addrs().items() if name != "lo"]
    return next(entry.address for found in of_interfaces for entry in found if entry.family.name == "AF_INET")
