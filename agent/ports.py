"""What the loops ask of the world outside, and the errors they are told.

AgentError
├── StartError          a person must act: the message says what and how; exit code 1
└── ApiError            the API server's answer, or the lack of one
    ├── Unavailable     no usable answer: connection, TLS, timeout, 5xx, 429, nonsense; time may heal it
    ├── Unauthorized    401
    ├── Forbidden       403
    ├── NotFound        404
    ├── AlreadyExists   409 at creation
    ├── Conflict        409 at update: somebody was faster, or the object is gone
    └── Rejected        any other 4xx: the request itself is wrong
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from agent.core.events import NodeEvent
from agent.core.model import HostSnapshot, Object

Rand = Callable[[], float]
"""A random number in [0, 1)."""


class AgentError(Exception):
    """Base of everything this program raises on purpose."""


class StartError(AgentError):
    """The program cannot go on until a person acts."""


class ApiError(AgentError):
    """A request to the API server did not succeed."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ApiError):
    """The API server gave no usable answer; trying again later makes sense."""


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


class Host(Protocol):
    """The machine we run on."""

    async def snapshot(self) -> HostSnapshot:
        """Read everything about the machine."""

    async def glance(self) -> HostSnapshot:
        """Read what may change from one second to the next; the rest is as it was."""


class NodeApi(Protocol):
    """Our Node at the API server."""

    async def get(self, name: str) -> Object:
        """Read the Node."""

    async def create(self, node: Object) -> Object:
        """Create the Node."""

    async def patch_status(self, name: str, patch: Object) -> Object:
        """Apply a strategic-merge patch through the status subresource."""


class LeaseApi(Protocol):
    """Our Lease at the API server."""

    async def get(self, name: str) -> Object:
        """Read the Lease."""

    async def create(self, lease: Object) -> Object:
        """Create the Lease."""

    async def replace(self, lease: Object) -> Object:
        """Write the Lease if it is still the version it was read as."""


class CSINodeApi(Protocol):
    """Our CSINode at the API server."""

    async def get(self, name: str) -> Object:
        """Read the CSINode."""

    async def create(self, csinode: Object) -> Object:
        """Create the CSINode."""

    async def delete(self, name: str) -> None:
        """Delete the CSINode."""


class EventApi(Protocol):
    """Where events go."""

    async def create(self, event: Object) -> Object:
        """Send an event."""

    async def patch(self, name: str, patch: Object) -> Object:
        """Count an event that was sent before once more."""


class Recorder(Protocol):
    """Takes events without ever waiting."""

    def record(self, event: NodeEvent) -> None:
        """Queue an event; delivery is somebody else's task."""
