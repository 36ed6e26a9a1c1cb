"""The Protocols and errors in which controllers speak with adapters.

AgentError
├── StartError          a person must act: the message says what and how; exit code 1
├── NodeDeleted         our Node was deleted, and --on-node-deleted=exit; exit code 0
├── NoLogind            there is no logind that announces shutdowns, or not any more
├── LogindRefused       logind knows us and says no
└── ApiError            the API server's answer, or the lack of one
    ├── Unavailable     no usable answer: connection, TLS, timeout, 5xx, 429, nonsense; time may heal it
    ├── Unauthorized    401
    ├── Forbidden       403
    ├── NotFound        404
    ├── AlreadyExists   409 at creation
    ├── Conflict        409 at update: somebody was faster, or the object is gone
    ├── Expired         410: a watch cannot go on from there
    ├── NotSigned       a certificate was requested and not issued, or not stored
    │   └── Unusable    one was issued, but not what was requested
    └── Rejected        any other 4xx: the request itself is wrong
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from agent.core.csr import Template
from agent.core.events import EventLike
from agent.core.model import CSINodeObject, HostSnapshot, LeaseObject, NodeObject, Object, PodObject
from agent.core.pods.static import Manifest
from agent.core.usage import Detail, HostUsage
from agent.core.x509 import Certificate

Rand = Callable[[], float]
"""A random number in [0, 1)."""


class AgentError(Exception):
    """Base of everything this program raises on purpose; the hint is what a person may do, if there is something."""

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class StartError(AgentError):
    """The program cannot go on until a person acts."""


class NodeDeleted(AgentError):
    """Somebody deleted our Node, and the settings say that this is the end."""


class NoLogind(AgentError):
    """There is no logind to talk to."""


class LogindRefused(AgentError):
    """Logind does not do this for us."""


class ApiError(AgentError):
    """A request to the API server did not succeed."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ApiError):
    """The API server gave no usable answer; trying again later makes sense."""


class Untrusted(Unavailable):
    """The certificate of whoever answers is not that of the API server."""


class Unauthorized(ApiError):
    """The API server does not know us."""


class Forbidden(ApiError):
    """The API server knows us and says no."""


class NotFound(ApiError):
    """There is no such object."""


class AlreadyExists(ApiError):
    """An object of this name is there already."""


class Conflict(ApiError):
    """The object changed since it was read."""


class Expired(ApiError):
    """The API server does not remember that far back."""


class NotSigned(ApiError):
    """A certificate request was denied, failed or timed out, or the certificate could not be stored."""


class Unusable(NotSigned):
    """The issued certificate does not parse, or has another key or name than the request."""


class Rejected(ApiError):
    """The API server finds the request itself wrong."""


class Clock(Protocol):
    """All time that the program sees, and every wait."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, but not longer than this; whether it came."""


class UsageSource(Protocol):
    """A machine of which somebody wants to know what is in use."""

    async def usage(self, detail: Detail) -> HostUsage:
        """Read what of the machine is in use."""


class Host(UsageSource, Protocol):
    """The machine we run on."""

    async def snapshot(self) -> HostSnapshot:
        """Read everything about the machine."""

    async def glance(self) -> HostSnapshot:
        """Read what may change from one second to the next; the rest is as it was."""


class NodeApi(Protocol):
    """Our Node at the API server."""

    async def get(self, name: str) -> NodeObject:
        """Read the Node."""

    async def create(self, node: NodeObject) -> NodeObject:
        """Create the Node."""

    async def patch_status(self, name: str, patch: Object) -> NodeObject:
        """Apply a strategic-merge patch through the status subresource."""

    async def delete(self, name: str) -> None:
        """Delete the Node."""


class LeaseApi(Protocol):
    """Our Lease at the API server."""

    async def get(self, name: str) -> LeaseObject:
        """Read the Lease."""

    async def create(self, lease: LeaseObject) -> LeaseObject:
        """Create the Lease."""

    async def replace(self, lease: LeaseObject) -> LeaseObject:
        """Write the Lease if it is still the version it was read as."""

    async def delete(self, name: str) -> None:
        """Delete the Lease."""


class CSINodeApi(Protocol):
    """Our CSINode at the API server."""

    async def get(self, name: str) -> CSINodeObject:
        """Read the CSINode."""

    async def create(self, csinode: CSINodeObject) -> CSINodeObject:
        """Create the CSINode."""

    async def delete(self, name: str) -> None:
        """Delete the CSINode."""


class EventApi(Protocol):
    """Where events go."""

    async def create(self, event: Object) -> Object:
        """Send an event."""

    async def patch(self, event: Object, patch: Object) -> Object:
        """Count an event that was sent before once more."""


class PodApi(Protocol):
    """The pods that are bound to our Node."""

    async def create(self, pod: PodObject) -> PodObject:
        """Create a mirror pod."""

    async def patch_status(self, namespace: str, name: str, patch: Object) -> PodObject:
        """Apply a strategic-merge patch through the status subresource."""

    async def delete(self, namespace: str, name: str, uid: str) -> None:
        """Remove a pod that has ended, at once, if it still is this one."""


class ManifestSource(Protocol):
    """Where static pods are asked for."""

    async def read(self) -> Sequence[Manifest]:
        """Everything that is asked for now."""


class Listed(NamedTuple):
    """All objects of a selection at one moment."""

    objects: list[Any]  # of the kind that is listed
    version: str


class Change(NamedTuple):
    """What a watch reports: OPENED (once, without an object), ADDED, MODIFIED, DELETED or BOOKMARK."""

    kind: str
    object: Any  # of the kind that is watched


class WatchApi(Protocol):
    """Some objects of one kind, and what happens to them."""

    async def list(self) -> Listed:
        """All of them now."""

    def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        """Every change after a version, for at most so long; Expired where that version is too old."""


class KeyPair(NamedTuple):
    """A certificate with its chain, and its key."""

    certificate_pem: str
    key_pem: str

    def __repr__(self) -> str:
        """Leave out the key, which must not appear in a log."""
        return f"KeyPair({self.certificate_pem!r}, ...)"


class PreparedRequest(NamedTuple):
    """A certificate request and the key that signed it."""

    key_pem: str
    csr_pem: str
    public_key: bytes
    is_rsa: bool

    def __repr__(self) -> str:
        """Leave out the key, which must not appear in a log."""
        return f"PreparedRequest(..., {self.csr_pem!r})"


class KeyMaker(Protocol):
    """Makes keys and certificate requests. Its methods raise NotSigned where that fails."""

    async def request(self, template: Template, key_pem: str = "") -> PreparedRequest:
        """Make a certificate request, for this key or a new one."""

    async def fault(self, csr_pem: str, key_pem: str, template: Template) -> str:
        """Return why a stored request does not belong to this key and template; empty if it does."""


class CSRApi(Protocol):
    """CertificateSigningRequests at the API server."""

    async def create(self, request: Object) -> Object:
        """Create a CSR; the API server chooses a name where it has none."""

    async def get(self, name: str) -> Object:
        """Read a CSR."""

    def named(self, name: str) -> WatchApi:
        """Return the selection of one CSR, to list and watch it."""


class CSRClients(Protocol):
    """Opens clients for CertificateSigningRequests, with the best credentials at that moment."""

    def open(self) -> AbstractAsyncContextManager[CSRApi]:
        """Connect until the block ends. Raises NotSigned if no credentials load."""


class CertificateStore(Protocol):
    """Stores the certificate in use, with its key."""

    async def current(self) -> Certificate | None:
        """Return the certificate in use, expired or not; None if none loads. Raises StartError if it cannot look."""

    async def update(self, certificate_pem: str, key_pem: str) -> Certificate:
        """Store a pair and use it from now on. Raises NotSigned if it cannot be stored."""


class ReviewApi(Protocol):
    """The API server's word on who somebody is and what they may do."""

    async def token(self, token: str) -> Object:
        """The status of a TokenReview."""

    async def access(self, question: Object) -> Object:
        """The status of a SubjectAccessReview with this spec."""


class Recorder(Protocol):
    """Takes events without ever waiting."""

    def record(self, event: EventLike, about: Object | None = None) -> None:
        """Queue an event about an object, or about the Node; delivery is somebody else's task."""

    def forget(self, uid: str) -> None:
        """Nothing more will be recorded about an object."""


class Reachability(Protocol):
    """Whoever wants to know whether the API server answers."""

    def answered(self) -> None:
        """Take in that the API server answered a request, whatever it said."""

    def unanswered(self, error: ApiError, *, waited_seconds: float = 0.0) -> None:
        """Take in that no API server answered a request, after it had been waited for so long."""


class ServiceManager(Protocol):
    """Whoever started us, and starts us again."""

    listens: bool
    watchdog_seconds: float | None  # after such a silence we are restarted

    def notify(self, *assignments: str) -> None:
        """Send these assignments, as sd_notify(3) has them; never waits."""


class LogindSession(Protocol):
    """Logind as long as the connection lasts; NoLogind when it does not."""

    async def listen(self) -> None:
        """From now on, remember word of shutdowns."""

    async def next_change(self) -> bool:
        """Wait for the next change, and return whether the machine is going down."""

    async def delay_seconds(self) -> float:
        """For how long a shutdown can be delayed."""

    async def raise_delay(self, seconds: float) -> None:
        """Have it delayed longer; LogindRefused for whom that is not allowed."""

    async def inhibit(self) -> None:
        """Delay the next shutdown until `release`; LogindRefused for whom that is not allowed."""

    def release(self) -> None:
        """Let the machine go down."""


class LogindApi(Protocol):
    """Who knows when the machine goes down."""

    def connected(self) -> AbstractAsyncContextManager[LogindSession]:
        """A connection; NoLogind where there is none to be had."""
