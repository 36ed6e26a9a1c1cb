"""Fakes around certificates: CSRs that the test approves, keys that are words, and a store of one certificate."""

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from agent.controllers.bootstrap import BootstrapState
from agent.core.csr import Template
from agent.core.model import Object
from agent.core.x509 import Certificate
from agent.minicluster.csr_strategy import SIGNING_REQUESTS
from agent.ports import (
    CertificateStore,
    Change,
    CSRApi,
    CSRClients,
    KeyMaker,
    Listed,
    NotSigned,
    PreparedRequest,
    WatchApi,
)
from tests.fakes.clock import FakeClock
from tests.fakes.objects import FakeObjects


def certificate_pem(wish: Object) -> str:
    """A certificate with what a request of FakeKeys wants; nobody has signed it."""
    names = [_der(0x82, name.encode()) for name in wish["dns"]]
    names += [_der(0x87, ip_address(text).packed) for text in wish["ips"]]
    alternatives = _der(0x30, b"\x06\x03\x55\x1d\x11", _der(0x04, _der(0x30, *names)))
    subject = _attribute(b"\x0a", "system:nodes"), _attribute(b"\x03", wish["name"])
    times = [_der(0x17, time) for time in (b"260101000000Z", b"270101000000Z")]
    fields = (
        _der(0x02, b"\x01"),
        _der(0x30),
        _der(0x30),
        _der(0x30, *times),
        _der(0x30, *subject),
        _der(0x30, wish["key"].encode()),
        _der(0xA3, _der(0x30, alternatives)),
    )
    body = base64.b64encode(_der(0x30, _der(0x30, *fields))).decode()
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"


def _attribute(kind: bytes, text: str) -> bytes:
    return _der(0x31, _der(0x30, _der(0x06, b"\x55\x04" + kind), _der(0x0C, text.encode())))


def _der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    return bytes([tag, 0x82]) + len(content).to_bytes(2) + content


class FakeCSRs(FakeObjects):
    """Signing requests at an API server that signs them at once, or when a test says so."""

    def __init__(self, clock: FakeClock, *, approves: bool = True) -> None:
        super().__init__(clock, SIGNING_REQUESTS)
        self.approves = approves
        self.opened = 0
        self.refusal: Exception | None = None  # what a new request is answered with
        self.forge: Callable[[Object], str] = certificate_pem  # what a request is answered with

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeCSRs"]:
        self.opened += 1
        yield self

    @property
    def names(self) -> list[str]:
        return list(self.objects)

    async def create(self, request: Object) -> Object:
        if self.refusal:
            raise self.refusal
        created = self._ask("create", lambda: self._registry.create(SIGNING_REQUESTS, "", request))
        if self.approves:
            self.sign(created["metadata"]["name"])
        return created

    async def get(self, name: str) -> Object:
        return self._ask("get", lambda: self._registry.get(SIGNING_REQUESTS, "", name))

    def named(self, name: str) -> WatchApi:
        return _OneCSR(self, name)

    def sign(self, name: str) -> None:
        """Approve a request and give it its certificate."""
        pem = self.forge(_wish(base64.b64decode(self.objects[name]["spec"]["request"]).decode()))
        self.decide(name, "Approved", certificate=base64.b64encode(pem.encode()).decode())

    def decide(self, name: str, kind: str, **status: str) -> None:
        """Approve or deny a request, and set more of its status."""
        condition = {"type": kind, "status": "True", "reason": "R", "message": "m"}
        self._patch("", name, {"status": {"conditions": [condition]}}, "approval")
        if status:
            self._patch("", name, {"status": status}, "status")
        self._announce()


class _OneCSR:
    """One of the requests, to be listed and watched."""

    def __init__(self, csrs: FakeCSRs, name: str) -> None:
        self._csrs = csrs
        self._name = name

    async def list(self) -> Listed:
        return self._csrs._listed(self._is_it)

    def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        return self._csrs._watched(version, seconds, self._is_it)

    def _is_it(self, obj: Object) -> bool:
        return bool(obj["metadata"]["name"] == self._name)


def _wish(csr_pem: str) -> Object:
    wish: Object = json.loads(base64.b64decode(csr_pem.splitlines()[1]))
    return wish


class FakeKeys:
    """Keys that are words: a new one is a number."""

    def __init__(self) -> None:
        self.made: list[Template] = []
        self.unusable: set[str] = set()
        self.fault_found = ""

    async def request(self, template: Template, key_pem: str = "") -> PreparedRequest:
        if key_pem in self.unusable:
            raise NotSigned("unable to make a key: nonsense")
        self.made.append(template)
        key = key_pem or f"key-{len(self.made)}"
        wish = {"name": template.common_name, "dns": template.dns_names, "ips": template.ip_addresses, "key": key}
        body = base64.b64encode(json.dumps(wish).encode()).decode()
        csr_pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n"
        return PreparedRequest(key_pem=key, csr_pem=csr_pem, public_key=_der(0x30, key.encode()), is_rsa=False)

    async def fault(self, csr_pem: str, key_pem: str, template: Template) -> str:
        return self.fault_found


class FakeStore:
    """The certificate in use; each new one lives for `life` from now on."""

    def __init__(self, clock: FakeClock, *, life: timedelta = timedelta(seconds=1000)) -> None:
        self.clock, self.life = clock, life
        self.certificate: Certificate | None = None
        self.updated_at: list[float] = []
        self.key_pem = ""
        self.names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    async def current(self) -> Certificate | None:
        return self.certificate

    async def update(self, certificate_pem: str, key_pem: str) -> Certificate:
        self.updated_at.append(self.clock.elapsed)
        self.key_pem = key_pem
        self.certificate = self.made()
        return self.certificate

    def made(self, common_name: str = "system:node:n1") -> Certificate:
        now, (dns_names, addresses) = self.clock.now(), self.names
        return Certificate(common_name, ("system:nodes",), dns_names, addresses, now, now + self.life, b"")


class FakeBootstrapState:
    """The key of a bootstrap, as long as it is kept."""

    def __init__(self) -> None:
        self.kept = ""
        self.finished = False

    async def key(self) -> str:
        return self.kept

    async def keep_key(self, key_pem: str) -> None:
        self.kept = key_pem

    async def finish(self) -> None:
        self.kept, self.finished = "", True


if TYPE_CHECKING:
    _csrs: CSRApi = FakeCSRs(FakeClock())
    _clients: CSRClients = FakeCSRs(FakeClock())
    _keys: KeyMaker = FakeKeys()
    _store: CertificateStore = FakeStore(FakeClock())
    _state: BootstrapState = FakeBootstrapState()
