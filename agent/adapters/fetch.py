"""One GET whose answer is bounded in size and time, for a server that is not trusted yet."""

import asyncio
from typing import NamedTuple

import httpx

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
