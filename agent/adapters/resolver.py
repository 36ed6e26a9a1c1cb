"""Name resolution that belongs to one connection: nobody else's slow lookup can stand before it."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

_DEADLINE_SECONDS = 3.0


class LaneResolver(AbstractResolver):
    """The system's resolver in a thread of its own; where it is silent, the last answer stands.

    aiohttp's would share the event loop's threads with every reading of the host, and wait for one to come free.
    """

    def __init__(self, deadline_seconds: float = _DEADLINE_SECONDS) -> None:
        self._deadline_seconds = deadline_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="resolver")
        self._pending: dict[str, asyncio.Future[list[ResolveResult]]] = {}
        self._known: dict[tuple[str, int], list[ResolveResult]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host; an OSError where nobody knows any."""
        try:
            found = await self._ask(host, port, family)
        except (OSError, TimeoutError):
            if known := self._known.get((host, port)):
                return known
            raise
        self._known[host, port] = found
        return found

    async def close(self) -> None:
        """Let go of the thread; a lookup that hangs is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
        lookup = self._pending.get(host)
        if lookup is None or lookup.done():  # one that hangs is not started again
            run = asyncio.get_running_loop().run_in_executor
            lookup = self._pending[host] = run(self._thread, _look_up, host, port, family)
            lookup.add_done_callback(_seen)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await asyncio.shield(lookup)
        except TimeoutError:
            raise OSError(f"no answer from the resolver within {self._deadline_seconds:g}s") from None


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=port,
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for kind, _, protocol, _, address in found
    ]


def _seen(lookup: asyncio.Future[list[ResolveResult]]) -> None:
    """Nobody may be there any more to hear that a lookup failed."""
    if not lookup.cancelled():
        lookup.exception()
