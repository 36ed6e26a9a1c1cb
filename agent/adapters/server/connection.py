"""One connection of a port: since when it is idle, and what it may hold of our memory."""

import gc
import logging
import math
import traceback
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any

from agent.klog import V4

log = logging.getLogger(__name__)

READ_BYTES = 16 * 1024  # at a time, and about as much of a body is kept until a handler reads it
_FIRST_REQUEST_SECONDS = 20.0
IDLE_SECONDS = 90.0  # between two requests, as kubelet; and with a response that the client does not read
_MAX_UNSENT_BYTES = 16 * 1024  # of a connection; over TLS asyncio would buffer 512 KiB

# asyncio gives each TLS connection a buffer of 256 KiB, an idle one too.
SSLProtocol.max_size = 2 * READ_BYTES


class Connection:
    """One connection, from the moment it was accepted."""

    __slots__ = ("address", "close", "has_sent_request", "is_draining", "reading_since", "write_paused_since")

    def __init__(self, address: str, now: float) -> None:
        self.address = address
        self.reading_since = now  # infinity while a request is being answered
        self.write_paused_since = math.inf  # finite while the client does not read its response
        self.has_sent_request = False
        self.is_draining = False  # it is closed once its request has been answered
        self.close: Callable[[], object] = lambda: None

    @property
    def idle_since(self) -> float:
        """Since when the client has neither sent nor read anything; infinity while we work for it."""
        return min(self.reading_since, self.write_paused_since)

    def is_overdue(self, now: float) -> bool:
        """Whether the client has been idle for too long."""
        return now - self.idle_since > (IDLE_SECONDS if self.has_sent_request else _FIRST_REQUEST_SECONDS)


def release_frames(error: BaseException | None) -> None:
    """Cut the cycle of an exception and the frames that hold it, which would keep a whole connection in memory."""
    if error:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None


def limit_buffers(transport: Any) -> None:
    """Have asyncio buffer little of what is not sent or not read yet: by default 512 and 256 KiB."""
    transport.set_write_buffer_limits(_MAX_UNSENT_BYTES)
    if hasattr(transport, "set_read_buffer_limits"):  # over TLS
        transport.set_read_buffer_limits(READ_BYTES)
    else:
        transport.max_size = READ_BYTES


def trim_memory() -> None:
    """Return free memory from the C library to the system: it may be as much as the whole daemon needs."""
    import ctypes  # noqa: PLC0415  few ever need it

    gc.collect(1)  # the reference cycles that asyncio makes around TLS
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # not glibc
        log.log(V4, "The C library keeps the memory of connections that ended")
