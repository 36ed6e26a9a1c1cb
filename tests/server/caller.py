"""Whoever calls a kubelet: one identity, one connection to each server."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.body)
        return found


@dataclass(frozen=True)
class Identity:
    """What somebody shows."""

    name: str
    certificate: tuple[Path, Path] | None = None  # and key
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(
        self, port: int, method: str, path: str, body: bytes = b"", *, source: str = "127.0.0.1", **headers: str
    ) -> Answer:
        """One request on a connection of its own."""
        with self.connect(port, source=source) as connection:
            connection.request(method, path, body=body or None, headers={**self.headers, **headers})
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())

    @contextmanager
    def connect(self, port: int, *, source: str = "127.0.0.1") -> Iterator[http.client.HTTPSConnection]:
        """A connection for many requests, without headers of its own."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=20, context=self._tls(), source_address=(source, 0)
        )
        try:
            yield connection
        finally:
            connection.close()

    def _tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # both serve with what they made themselves
        if self.certificate:
            context.load_cert_chain(*self.certificate)
        return context


NOBODY = Identity("nobody")


def bearer(name: str, token: str) -> Identity:
    """Somebody with a token."""
    return Identity(name, headers={"Authorization": f"Bearer {token}"})
