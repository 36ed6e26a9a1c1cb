"""Requests to the API server with a deadline, on connections of their own; the errors of HTTP stop here."""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, Literal, TypeVar
from urllib.parse import urlencode, urlsplit

from msgspec.json import encode

from agent import __version__
from agent.adapters.answers import (
    MOST_BYTES,
    MOST_PAGE_BYTES,
    Content,
    Malformed,
    Page,
    TooLarge,
    WatchEvent,
    decoded,
    error_of,
    page,
    watch_event,
)
from agent.adapters.credentials import Credentials
from agent.adapters.http1 import HttpError
from agent.adapters.http_client import CertificateError, HttpClient, Response
from agent.adapters.reasons import Blame
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.metrics import Counter, Family, Histogram
from agent.core.model import Object
from agent.core.text import one_line
from agent.core.times import format_seconds
from agent.ports import Reachability, Unauthorized, Unavailable, Untrusted

log = logging.getLogger(__name__)

T = TypeVar("T")
Query = tuple[tuple[str, str], ...]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Verb = Method | Literal["WATCH"]
ContentType = Literal["application/json", "application/strategic-merge-patch+json"]

JSON: Final = "application/json"
_V6 = logging.INFO - 6
_DEFAULT_TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_LATE_SECONDS = 10.0  # how much later than promised a server may end a watch
_SILENCE_SECONDS = 150.0  # a server sends bookmarks each minute
_NO_STATUS = "<error>"
_BUCKETS_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_FAULTS = (HttpError, TimeoutError, Malformed)
_HINTS: Final[dict[Blame, str]] = {
    "authority": "is certificate-authority in {source} that of this cluster?",
    "time": "renew the certificate of the API server, or set the clock of this machine",
    "name": "the server or tls-server-name in {source} has to be a name that the certificate has",
    "certificate": "is the server in {source} that of this cluster?",
}


class RequestMetrics:
    """Counts requests and how they were answered, as client-go does; all connections of a process share one."""

    def __init__(self, observe: Callable[[int | None, float], None] = lambda _status, _seconds: None) -> None:
        self._observe = observe  # is called with the status of each answer, and with how long it took
        self._requests = Counter(
            "rest_client_requests_total",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
        )
        self._durations = Histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            ("host", "verb"),
            _BUCKETS_SECONDS,
        )

    def answered(self, method: Method, host: str, status: int | None, took_seconds: float) -> None:
        """Count a request by the status of its answer; None if there was no answer."""
        self._requests.add(_NO_STATUS if status is None else str(status), host, method)
        self._durations.observe(host, method, value=took_seconds)
        self._observe(status, took_seconds)

    def families(self) -> Iterator[Family]:
        """The same as metrics."""
        yield self._requests.family()
        yield self._durations.family()


class ApiConnection:
    """Requests to the API server on connections that nothing else uses, with a deadline."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        architecture: str,
        timeout_seconds: float | None = None,
        on_unauthorized: Callable[[], None] = lambda: None,
        metrics: RequestMetrics | None = None,
        reachability: Reachability | None = None,
    ) -> None:
        self._timeout_seconds = timeout_seconds or _DEFAULT_TIMEOUT_SECONDS
        # A heartbeat is tried five times in a row: all of them together must fit into a lease.
        self._most_retry_after_seconds = timeout_seconds / 4 if timeout_seconds else None
        # The server gives up when we do; kubelet says so for heartbeats only.
        self._query: Query = (("timeout", format_seconds(timeout_seconds)),) if timeout_seconds else ()
        # The part before the slash becomes the manager in managedFields, as for a kubelet.
        self._user_agent = f"kubelet/{KUBELET_VERSION} (linux/{architecture}) fake-kubelet/{__version__}"
        self._on_unauthorized = on_unauthorized
        self._reachability = reachability
        self._watches: set[Response] = set()
        self._credentials = credentials
        self.metrics = metrics or RequestMetrics()
        self._client = self._client_with(credentials)

    def _client_with(self, credentials: Credentials) -> HttpClient:
        self._host = urlsplit(credentials.server).netloc
        headers = [*credentials.headers, ("Accept", JSON), ("Accept-Encoding", "identity")]
        headers.append(("User-Agent", self._user_agent))
        if credentials.authorization:
            headers.append(("Authorization", credentials.authorization))
        return HttpClient(
            credentials.server,
            tls=credentials.tls if isinstance(credentials.tls, ssl.SSLContext) else None,
            tls_server_name=credentials.tls_server_name,
            proxy=credentials.proxy,
            headers=headers,
        )

    async def use(self, credentials: Credentials) -> None:
        """Send the next requests with other credentials; requests under way are not cut off, watches are."""
        self._credentials = credentials
        self._client.retire()
        self._client = self._client_with(credentials)
        for watch in self._watches:
            watch.abort()

    async def close(self) -> None:
        """Close all connections."""
        self._client.close()

    async def call(
        self,
        method: Method,
        path: str,
        body: Object | None = None,
        content_type: ContentType = JSON,
        query: Query = (),
    ) -> Object:
        """Send a request and return the object in its answer; raise ApiError if there is none."""
        return await self._decoded(decoded, method, path, query, body=body, content_type=content_type)

    async def page(self, path: str, query: Query) -> tuple[Page, int]:
        """Return a page of a list and its size in bytes; raise TooLarge if the caller has to request a smaller one."""
        return await self._decoded(_page_with_size, "GET", path, query, MOST_PAGE_BYTES)

    async def _decoded(
        self,
        decode: Callable[[Content], T],
        method: Method,
        path: str,
        query: Query,
        most_bytes: int = MOST_BYTES,
        *,
        body: Object | None = None,
        content_type: ContentType = JSON,
    ) -> T:
        target = _target(path, (*self._query, *query))
        content = None if body is None else encode(body)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await self._send(method, target, content, content_type=content_type)
                with response:
                    answer = await self._success(response, most_bytes)
            result = decode(answer)
        except _FAULTS as error:
            raise self._failure(method, path, error, began) from error
        self._answered()
        return result

    async def stream(self, path: str, query: Query, *, seconds: float) -> AsyncGenerator[WatchEvent | None, None]:
        """Yield None when the server has opened the watch, then its events."""
        ends_at = asyncio.get_running_loop().time() + seconds + _LATE_SECONDS
        began: float | None = time.monotonic()
        rest = bytearray()
        try:
            async with _silence_timeout(ends_at):
                response = await self._send("GET", _target(path, query), connect_seconds=_CONNECT_SECONDS)
            with response, self._cut_off_by_use(response):
                if response.status != 200:
                    async with _silence_timeout(ends_at):
                        await self._success(response)
                began = None
                self._answered()
                yield None
                while part := await _next_part(response, ends_at):
                    for line in _lines(rest, part):
                        yield watch_event(line)
        except _FAULTS as error:
            raise self._failure("WATCH", path, error, began) from error

    @contextmanager
    def _cut_off_by_use(self, response: Response) -> Iterator[None]:
        self._watches.add(response)
        try:
            yield
        finally:
            self._watches.discard(response)

    async def _send(
        self,
        method: Method,
        target: str,
        content: bytes | None = None,
        *,
        content_type: ContentType = JSON,
        connect_seconds: float | None = None,
    ) -> Response:
        """Send one request, and return when the head of its answer has arrived; count and log it."""
        host, began, status = self._host, time.monotonic(), None
        try:
            response = await self._client.send(
                method, target, content, content_type=content_type, connect_seconds=connect_seconds
            )
            status = response.status
        finally:
            took = time.monotonic() - began
            self.metrics.answered(method, host, status, took)
        if log.isEnabledFor(_V6):
            url = f"{self._credentials.server}{target}"
            fields = {"verb": method, "url": url, "status": status, "milliseconds": round(took * 1000)}
            log.log(_V6, "Response", fields)  # as client-go's round_trippers.go
        return response

    async def _success(self, response: Response, most_bytes: int = MOST_BYTES) -> Content:
        """Return the body of an answer that is a success; raise the error that any other answer means."""
        content = await _read(response, most_bytes)
        if 200 <= response.status < 300:
            return content
        error = error_of(response.status, content, response.headers.get("retry-after"))
        if error.retry_after_seconds and self._most_retry_after_seconds is not None:
            error.retry_after_seconds = min(error.retry_after_seconds, self._most_retry_after_seconds)
        if isinstance(error, Unauthorized):
            self._on_unauthorized()  # perhaps newer credentials are there already
        if not isinstance(error, Malformed):
            self._answered()
        raise error

    def _answered(self) -> None:
        if self._reachability:
            self._reachability.answered()

    def _failure(self, verb: Verb, path: str, error: Exception, began: float | None) -> Unavailable:
        """Return the error of ours for a request that no API server has answered, and report it."""
        self._client.close_idle()  # as kubelet: they may lead to a machine that is gone
        text = f'{verb.capitalize()} "{self._credentials.server}{path}": {self._reason(verb, error)}'
        if isinstance(error, CertificateError):
            failure: Unavailable = Untrusted(text, hint=_HINTS[error.blame].format(source=self._credentials.source))
        else:
            failure = Unavailable(text, retry_after_seconds=getattr(error, "retry_after_seconds", None))
        if self._reachability:
            waited_seconds = 0.0 if began is None else time.monotonic() - began  # a watch may well be silent
            self._reachability.unanswered(failure, waited_seconds=waited_seconds)
        return failure

    def _reason(self, verb: Verb, error: Exception) -> str:
        if isinstance(error, TimeoutError) and verb == "WATCH":
            return "context deadline exceeded (nothing heard for too long)"
        if isinstance(error, TimeoutError):
            return f"context deadline exceeded (no answer within {format_seconds(self._timeout_seconds)})"
        return one_line(str(error))


def _page_with_size(content: Content) -> tuple[Page, int]:
    return page(content), len(content)


def _target(path: str, query: Query) -> str:
    return f"{path}?{_encoded(query)}" if query else path


@lru_cache(maxsize=4)  # all heartbeats have the same
def _encoded(query: Query) -> str:
    return urlencode(query)


async def _read(response: Response, most_bytes: int) -> Content:
    """Read the body; raise TooLarge if it is larger than any object of ours can be."""
    body = await response.read_part()
    while part := await response.read_part():
        body += part
        if len(body) > most_bytes:
            break
    if len(body) > most_bytes:
        raise TooLarge(f"the answer is larger than {most_bytes} bytes")
    return body


def _silence_timeout(ends_at: float) -> asyncio.Timeout:
    """Return the timeout for the next that a server sends in a watch."""
    return asyncio.timeout_at(min(ends_at, asyncio.get_running_loop().time() + _SILENCE_SECONDS))


async def _next_part(response: Response, ends_at: float) -> Content:
    async with _silence_timeout(ends_at):
        return await response.read_part()


def _lines(rest: bytearray, part: Content) -> Iterator[bytes]:
    """Yield the lines that this part completes; a line has one object, and the same limit as an answer with one."""
    *ends, tail = part.split(b"\n")
    for end in ends:
        rest += end
        line = bytes(rest)
        rest.clear()
        if line.strip():
            yield line
    rest += tail
    if len(rest) > MOST_BYTES:
        raise TooLarge(f"a line of the watch is larger than {MOST_BYTES} bytes")
