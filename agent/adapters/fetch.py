"""One GET whose answer is bounded in size and time, for a server that is not trusted yet."""

import asyncio
import socket
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx

from agent.adapters.reasons import connect_reason, connection_reason, lookup_reason, verify_reason

MOST_BYTES = 2**20


class Answer(NamedTuple):
    """The status line and the body of an answer."""

    status: int
    reason: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode("utf-8", "replace")


def fetch_reason(error: Exception, url: str) -> str:
    """Return why there is no answer, in the words of Go where the cause is the connection."""
    cause: BaseException = error
    while deeper := cause.__cause__ or cause.__context__:
        cause = deeper
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if not isinstance(cause, OSError):
        return str(error) or "EOF"
    parts = urlsplit(url)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return verify_reason(cause, parts.hostname or "")
    if isinstance(cause, ssl.SSLError):
        return connection_reason(cause)
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {parts.hostname}: {lookup_reason(cause)}"
    return f"dial tcp {parts.hostname}:{parts.port or 443}: connect: {connect_reason(cause)}"


async def fetch(url: str, transport: httpx.AsyncBaseTransport, *, seconds: float) -> Answer:
    """Send one GET, follow no redirect, and read at most MOST_BYTES, uncompressed.

    Raises TimeoutError after so many seconds, whatever has come by then; httpx.HTTPError, InvalidURL or OSError if
    there is no answer, and ValueError if it is too large.
    """
    headers = {"Accept-Encoding": "identity"}
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(transport=transport, headers=headers, timeout=seconds, trust_env=False) as client,
        client.stream("GET", url) as response,
    ):
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ValueError("the answer is compressed, and nobody has asked for that")
        body = bytearray()
        async for part in response.aiter_raw():
            body += part
            if len(body) > MOST_BYTES:
                raise ValueError(f"the answer is larger than {MOST_BYTES} bytes")
        return Answer(response.status_code, response.reason_phrase, bytes(body))
