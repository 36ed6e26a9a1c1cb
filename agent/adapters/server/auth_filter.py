"""Authentication and authorization of requests, as a kubelet delegates them to the API server."""

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from agent.adapters.server.telemetry import RateLimitedLog
from agent.core.access import (
    ANONYMOUS,
    TTLCache,
    User,
    access_review_spec,
    bearer_token,
    certified_user,
    is_allowed,
    reviewed_user,
    subresources,
    verb,
    websocket_token,
)
from agent.core.config import Serving
from agent.core.model import Object
from agent.core.routing import NodePath
from agent.core.x509 import read_certificate
from agent.klog import V2
from agent.ports import ApiError, Clock, Forbidden, ReviewApi, Unavailable

log = logging.getLogger(__name__)

_MAX_CACHED = 2048
_MAX_CONCURRENT_REVIEWS = 8
_REVIEW_SECONDS = 10.0  # including the wait for a free slot, and one retry
_RETRY_SECONDS = 0.5
_GRANT = "bind the ClusterRole system:auth-delegator to their user"

T = TypeVar("T")

_read = lru_cache(maxsize=64)(read_certificate)  # a scraper presents the same certificate each time


class Caller(NamedTuple):
    """The credentials that a request carries."""

    chain: tuple[bytes, ...] = ()  # DER: the client certificate that the TLS handshake verified, and its issuers
    authorization: str = ""
    protocols: tuple[str, ...] = ()  # of a WebSocket only; a browser sends its token there


class Denial(NamedTuple):
    """The response to a request that is not allowed."""

    status: int
    text: str


_UNAUTHORIZED = Denial(401, "Unauthorized")


class _InvalidCredentials(Exception):
    """The request carries credentials that do not authenticate anybody."""


class AuthFilter:
    """Allows requests or denies them. While the API server is away, only its cached answers count."""

    def __init__(
        self, *, serving: Serving, node_of: Callable[[str], NodePath], reviews: ReviewApi, clock: Clock
    ) -> None:
        self._serving = serving
        self._node_of = node_of
        self._reviews = reviews
        self._clock = clock
        self._users: TTLCache[bytes, User | Denial] = TTLCache(_MAX_CACHED)
        self._rights: TTLCache[str, bool] = TTLCache(_MAX_CACHED)
        self._salt = secrets.token_bytes(32)
        self._forbidden: set[str] = set()  # the reviews that our credentials may not create
        self._review_slots = asyncio.Semaphore(_MAX_CONCURRENT_REVIEWS)
        self._log = RateLimitedLog(log, clock)

    async def denial(self, caller: Caller, method: str, path: str) -> Denial | None:
        """Return why this request is not allowed; None if it is."""
        try:
            user = await self._authenticate(caller)
        except _InvalidCredentials as error:
            self._log.log(V2, "Unable to authenticate the request due to an error", {"err": error})
            return _UNAUTHORIZED
        except ApiError as error:
            self._log.log(_level(error), "Unable to authenticate the request due to an error", {"err": error})
            return _UNAUTHORIZED
        if user is None:
            return _UNAUTHORIZED
        if not self._serving.access_reviews:
            return None
        node_name, path = self._node_of(path)
        return await self._authorize(user, verb(method), subresources(path), node_name)

    async def _authenticate(self, caller: Caller) -> User | None:
        """Return the first user that any credential authenticates; a request with invalid ones is not anonymous."""
        authenticators = [self._by_certificate]
        if self._serving.token_reviews:
            authenticators += [self._by_bearer_token, self._by_websocket_token]
        errors: list[Exception] = []
        for authenticate in authenticators:
            try:
                if user := await authenticate(caller):
                    return user
            except (_InvalidCredentials, ApiError) as error:
                errors.append(error)
        if errors:
            raise errors[-1]
        return ANONYMOUS if self._serving.anonymous else None

    async def _by_certificate(self, caller: Caller) -> User | None:
        if not caller.chain:
            return None
        try:
            chain = [_read(der) for der in caller.chain]
        except ValueError as error:
            raise _InvalidCredentials(str(error)) from error
        now = self._clock.now()
        if not all(certificate.not_before <= now <= certificate.not_after for certificate in chain):
            raise _InvalidCredentials(f'the client certificate of "{chain[0].common_name}" does not verify')
        return certified_user(chain[0], caller.chain[0])

    async def _by_bearer_token(self, caller: Caller) -> User | None:
        return await self._by_token(bearer_token(caller.authorization))

    async def _by_websocket_token(self, caller: Caller) -> User | None:
        try:
            return await self._by_token(websocket_token(caller.protocols))
        except ValueError as error:
            raise _InvalidCredentials(str(error)) from error

    async def _by_token(self, token: str) -> User | None:
        if not token:
            return None
        try:
            encoded = token.encode()
        except UnicodeEncodeError as error:  # aiohttp has surrogates for bytes that are not UTF-8
            raise _InvalidCredentials("invalid bearer token") from error
        # The cache holds no tokens, and the salt keeps anybody from finding two that collide.
        key = hashlib.sha256(self._salt + encoded).digest()
        user = self._users.get(key, self._clock.monotonic())
        if user is None:
            user = await self._review("tokenreviews", lambda: self._review_token(token, key))
        if isinstance(user, Denial):
            raise _InvalidCredentials(user.text)
        return user

    async def _review_token(self, token: str, key: bytes) -> User | Denial:
        now = self._clock.monotonic()
        if cached := self._users.get(key, now):  # another request has reviewed it while this one waited for a slot
            return cached
        status = await self._reviews.token(token)
        try:
            user = reviewed_user(status) or Denial(401, "invalid bearer token")
        except ValueError as error:
            return Denial(401, str(error))  # not cached, as in kubelet
        self._users.put(key, user, expires_at=now + self._serving.token_seconds)
        return user

    async def _authorize(self, user: User, verb: str, subresources: tuple[str, ...], node_name: str) -> Denial | None:
        attributes = f"user={user.name}, verb={verb}, resource=nodes"
        fields = {"user": user.name, "verb": verb, "resource": "nodes"}
        for subresource in subresources:
            try:
                if await self._may(access_review_spec(user, verb, subresource, node_name)):
                    return None
            except (ApiError, ValueError) as error:
                self._log.log(
                    _level(error), "Authorization error", {"err": error, **fields, "subresource": subresource}
                )
                return Denial(500, f"Authorization error ({attributes}, subresource={subresource})")
        tried = f"[{' '.join(subresources)}]"
        self._log.log(V2, "Forbidden", {**fields, "subresource(s)": tried})
        return Denial(403, f"Forbidden ({attributes}, subresource(s)={tried})\n")

    async def _may(self, question: Object) -> bool:
        key = json.dumps(question, sort_keys=True)
        allowed = self._rights.get(key, self._clock.monotonic())
        if allowed is None:
            allowed = is_allowed(await self._review("subjectaccessreviews", lambda: self._reviews.access(question)))
            seconds = self._serving.allowed_seconds if allowed else self._serving.denied_seconds
            self._rights.put(key, allowed, expires_at=self._clock.monotonic() + seconds)
        return allowed

    async def _review(self, resource: str, send: Callable[[], Awaitable[T]]) -> T:
        """Send a review when a slot is free, and once more if the API server did not answer.

        Raises Unavailable if all of that takes too long.
        """
        try:
            async with asyncio.timeout(_REVIEW_SECONDS), self._review_slots:
                try:
                    review = await send()
                except Unavailable:
                    await self._clock.sleep(_RETRY_SECONDS)
                    review = await send()
        except TimeoutError as error:
            raise Unavailable("the API server did not answer a review in time") from error
        except Forbidden as error:
            self._report_missing_right(resource, error)
            raise
        self._forbidden.discard(resource)
        return review

    def _report_missing_right(self, resource: str, error: Forbidden) -> None:
        """Log once that our credentials may not create such reviews, until they may."""
        if resource not in self._forbidden:
            self._forbidden.add(resource)
            fields = {"right": f"create {resource}", "err": error, "hint": _GRANT}
            log.error("Our credentials may not ask the API server about callers, who are refused here", fields)


def _level(error: Exception) -> int:
    """Return the level of a review's error; a missing right has been reported already, and only a person can add it."""
    return V2 if isinstance(error, Forbidden) else logging.ERROR
