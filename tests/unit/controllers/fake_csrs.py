"""Fakes around certificates: CSRs that the test approves, keys that are words, and a store of one certificate."""

import base64
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_address

from agent.core.csr import Template
from agent.core.model import Object
from agent.core.x509 import Certificate
from agent.ports import NotSigned, PreparedRequest, WatchApi
from tests.fakes import FakeClock, FakeObjects


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


class FakeCSRs:
    """Signing requests, each with its own objects so that a watch sees no other."""

    def __init__(self, clock: FakeClock, *, approves: bool = True) -> None:
        self.clock, self.approves = clock, approves
        self.requests: dict[str, FakeObjects] = {}
        self.opened = 0
        self.refusal: Exception | None = None
        self.forge: Callable[[Object], str] = certificate_pem  # what a request is answered with
        self._numbers = itertools.count(1)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["FakeCSRs"]:
        self.opened += 1
        yield self

    @property
    def names(self) -> list[str]:
        return list(self.requests)

    async def create(self, request: Object) -> Object:
        if self.refusal:
            raise self.refusal
        name = request["metadata"].get("name") or f"csr-{next(self._numbers)}"
        objects = self.requests.setdefault(name, FakeObjects(self.clock))
        created = await objects.create({**request, "metadata": {"name": name}})
        if self.approves:
            await self.sign(name)
        return created

    async def get(self, name: str) -> Object:
        return await self.requests[name].get(name)

    def named(self, name: str) -> WatchApi:
        return self.requests[name]

    async def sign(self, name: str) -> None:
        """Approve a request and give it its certificate, in one step."""
        stored = await self.requests[name].get(name)
        pem = self.forge(json.loads(base64.b64decode(stored["spec"]["request"])))
        await self.decide(name, "Approved", certificate=base64.b64encode(pem.encode()).decode())

    async def decide(self, name: str, kind: str, **status: str) -> None:
        condition = {"type": kind, "reason": "R", "message": "m"}
        await self.requests[name].patch(name, {"status": {"conditions": [condition], **status}})


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
        return PreparedRequest(key_pem=key, csr_pem=json.dumps(wish), public_key=_der(0x30, key.encode()), is_rsa=False)

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
