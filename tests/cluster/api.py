"""The tests' one HTTP client: of API servers and of kubelets, as whoever it is told to be."""

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSINODES = "/apis/storage.k8s.io/v1/csinodes"
SIGNING_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Refused(Exception):
    """The server said no."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def refusal(self) -> tuple[int, str, str]:
        """Code, reason and message of a Status object; its code is the HTTP status."""
        status = self.json()
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", self.status), status
        return self.status, status.get("reason", ""), status["message"]

    @property
    def message(self) -> str:
        """The words of a Status, or all of the body."""
        is_status = self.status >= 400 and self.body.startswith(b"{")
        return str(self.json().get("message", "")) if is_status else self.body.decode(errors="replace")


@dataclass(frozen=True)
class Identity:
    """What somebody shows, and whom he trusts: without an authority anybody, as kubelets sign for themselves."""

    name: str
    certificate: tuple[Path, Path] | None = None  # and key
    headers: Mapping[str, str] = field(default_factory=dict)
    authority: Path | None = None
    is_tls: bool = True

    def ask(
        self,
        port: int,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        source: str = "127.0.0.1",
        host: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        """One request on a connection of its own: the server may have been restarted since the last one."""
        with self.connect(port, source=source, host=host) as connection:
            connection.request(method, path, body=body or None, headers={**self.headers, **headers})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())

    @contextmanager
    def connect(
        self, port: int, *, source: str = "127.0.0.1", host: str = "127.0.0.1", timeout: float = 60.0
    ) -> Iterator[http.client.HTTPConnection]:
        """A connection for many requests, without headers of its own."""
        there: dict[str, Any] = {"host": host, "port": port, "timeout": timeout, "source_address": (source, 0)}
        connection = (
            http.client.HTTPSConnection(**there, context=self._tls())
            if self.is_tls
            else http.client.HTTPConnection(**there)
        )
        try:
            yield connection
        finally:
            connection.close()

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority) if self.authority else unchecked_tls()
        if self.certificate:
            context.load_cert_chain(*self.certificate)
        return context


NOBODY = Identity("nobody")
PLAIN = Identity("nobody, over plain HTTP", is_tls=False)


def bearer(name: str, token: str, authority: Path | None = None) -> Identity:
    """Somebody with a token."""
    return Identity(name, headers={"Authorization": f"Bearer {token}"}, authority=authority)


def unchecked_tls() -> ssl.SSLContext:
    """For whoever serves with a certificate of his own making."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Api:
    """An API server on loopback, asked by one identity: without kubectl's start-up time."""

    def __init__(self, port: int, identity: Identity) -> None:
        self._port, self._identity = port, identity

    def as_bearer(self, token: str) -> Self:
        """The same server, for the bearer of a token."""
        return type(self)(self._port, bearer("bearer", token, self._identity.authority))

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "",
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Answer:
        """Whatever it answers to one request; a body that is bytes goes as it is."""
        text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        kind = content_type or (STRATEGIC if method == "PATCH" else JSON)
        sent = {"Accept": accept, **({"Content-Type": kind} if text else {}), **(headers or {})}
        return self._identity.ask(self._port, method, _target(path, query), text, **sent)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> dict[str, Any]:
        """The object that it answers with; Refused if it does not."""
        answer = self.ask(method, path, body, content_type=content_type)
        if answer.status >= 300:
            raise Refused(answer.status, answer.message)
        found: dict[str, Any] = answer.json()
        return found

    def get(self, path: str) -> dict[str, Any]:
        """One object."""
        return self.request("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        """All objects of a list."""
        found: list[dict[str, Any]] = self.get(path)["items"]
        return found

    def create(self, path: str, body: Any) -> dict[str, Any]:
        """Make an object."""
        return self.request("POST", path, body)

    def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH) -> dict[str, Any]:
        """Change an object."""
        return self.request("PATCH", path, body, content_type)

    def delete(self, path: str) -> None:
        """Remove an object; it is no fault if there is none."""
        try:
            self.request("DELETE", path)
        except Refused as refusal:
            if refusal.code != http.HTTPStatus.NOT_FOUND:
                raise

    @contextmanager
    def watch(self, path: str, *, accept: str = JSON, **query: str) -> Iterator["Watch"]:
        """An open watch, which ends with the block."""
        target = _target(path, {"watch": "true", "timeoutSeconds": "30"} | query)
        with self._identity.connect(self._port, timeout=int(query.get("timeoutSeconds", 30)) + 90) as connection:
            connection.request("GET", target, headers={**self._identity.headers, "Accept": accept})
            yield Watch(connection.getresponse())

    @contextmanager
    def upgraded(
        self, method: str, target: str, headers: Mapping[str, str]
    ) -> Iterator[tuple[int, Mapping[str, str], socket.socket]]:
        """Status and headers of the answer to an upgrade, and the connection for what comes after it."""
        with self._identity.connect(self._port) as connection:
            connection.request(method, target, headers={**self._identity.headers, **headers})
            sock = connection.sock
            response = connection.getresponse()
            yield response.status, dict(response.headers), sock


class Watch:
    """The events of one watch, in order and at the moment they come."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self._lines = response.status, response

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (json.loads(line) for line in self._lines)

    def lines(self) -> Iterator[bytes]:
        """What comes, if it is no watch: the lines of a log."""
        return iter(self._lines)

    def next(self) -> dict[str, Any]:
        """The next event."""
        return next(iter(self))

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """All events up to the first wanted one."""
        seen: list[dict[str, Any]] = []
        while not seen or not wanted(seen[-1]):
            seen.append(self.next())
        return seen


def _target(path: str, query: Mapping[str, str]) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query)}" if query else path
