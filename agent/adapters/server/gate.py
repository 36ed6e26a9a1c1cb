"""Who may pass: authentication and authorization as a kubelet's, with the API server's word and a memory for it."""

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from agent.adapters.server.limited_log import LimitedLog
from agent.core.access import (
    ANONYMOUS,
    User,
    access_question,
    bearer_token,
    certified_user,
    is_allowed,
    reviewed_user,
    subresources,
    verb,
    websocket_token,
)
from agent.core.config import Serving
from agent.core.recall import Recall
from agent.core.x509 import read_certificate
from agent.klog import V2
from agent.ports import ApiError, Clock, ReviewApi, Unavailable

log = logging.getLogger(__name__)

_MOST_ANSWERS = 2048
_MOST_REVIEWS_AT_ONCE = 8
_REVIEW_SECONDS = 10.0  # with the wait for a free place, and one more attempt
_AGAIN_SECONDS = 0.5

T = TypeVar("T")

_read = lru_cache(maxsize=64)(read_certificate)  # who scrapes shows the same one each time


class Caller(NamedTuple):
    """What a request tells about who sent it."""

    chain: tuple[bytes, ...] = ()  # DER: the client certificate that the handshake verified, and its issuers
    authorization: str = ""
    protocols: tuple[str, ...] = ()  # of a WebSocket, and of nothing else; a browser hides its token there


class Denial(NamedTuple):
    """Why somebody may not pass."""

    status: int
    text: str


_UNAUTHORIZED = Denial(401, "Unauthorized")


class _Unknown(Exception):
    """Credentials were shown, and they are no good."""


class Gate:
    """Lets requests pass, or says why not. When the API server is away, only what it said before still counts."""

    def __init__(self, *, serving: Serving, node_name: str, reviews: ReviewApi, clock: Clock) -> None:
        self._serving, self._node_name, self._reviews, self._clock = serving, node_name, reviews, clock
        self._users: Recall[bytes, User | Denial] = Recall(_MOST_ANSWERS)
        self._rights: Recall[str, bool] = Recall(_MOST_ANSWERS)
        self._salt = secrets.token_bytes(32)
        self._places = asyncio.Semaphore(_MOST_REVIEWS_AT_ONCE)
        self._log = LimitedLog(log, clock)

    async def denial(self, caller: Caller, method: str, path: str) -> Denial | None:
        """Why this request may not pass; None if it may."""
        try:
            user = await self._user(caller)
        except _Unknown as fault:
            self._log.log(V2, "Unable to authenticate the request due to an error", {"err": fault})
            user = None
        except ApiError as error:
            self._log.log(logging.ERROR, "Unable to authenticate the request due to an error", {"err": error})
            user = None
        if user is None:
            return _UNAUTHORIZED
        return await self._forbidden(user, verb(method), subresources(path)) if self._serving.access_reviews else None

    async def _user(self, caller: Caller) -> User | None:
        """The first that any credential names. One that is no good is no reason to take somebody for anonymous."""
        faults = []
        ways = [self._certified, *([self._bearing, self._by_websocket] if self._serving.token_reviews else [])]
        for ask in ways:
            try:
                if user := await ask(caller):
                    return user
            except (_Unknown, ApiError) as fault:
                faults.append(fault)
        if faults:
            raise faults[-1]
        return ANONYMOUS if self._serving.anonymous else None

    async def _certified(self, caller: Caller) -> User | None:
        if not caller.chain or not self._serving.client_ca_file:
            return None
        try:
            chain, now = [_read(der) for der in caller.chain], self._clock.now()
        except ValueError as error:
            raise _Unknown(str(error)) from error
        if not all(certificate.not_before <= now <= certificate.not_after for certificate in chain):
            raise _Unknown(f'the client certificate of "{chain[0].common_name}" does not verify')
        return certified_user(chain[0], caller.chain[0])

    async def _bearing(self, caller: Caller) -> User | None:
        return await self._reviewed(bearer_token(caller.authorization))

    async def _by_websocket(self, caller: Caller) -> User | None:
        try:
            return await self._reviewed(websocket_token(caller.protocols))
        except ValueError as error:
            raise _Unknown(str(error)) from error

    async def _reviewed(self, token: str) -> User | None:
        if not token:
            return None
        try:
            encoded = token.encode()
        except UnicodeEncodeError as error:  # aiohttp has surrogates for bytes that are no UTF-8
            raise _Unknown("invalid bearer token") from error
        # Tokens do not stay in memory, and nobody can guess which of them have the same place.
        key = hashlib.sha256(self._salt + encoded).digest()
        found = self._users.get(key, self._clock.monotonic())
        if found is None:
            found = await self._one_of_few(lambda: self._asked_about(token, key))
        if isinstance(found, Denial):
            raise _Unknown(found.text)
        return found

    async def _asked_about(self, token: str, key: bytes) -> User | Denial:
        now = self._clock.monotonic()
        if known := self._users.get(key, now):  # somebody asked while we waited
            return known
        status = await self._reviews.token(token)
        try:
            user = reviewed_user(status)
        except ValueError as error:
            return Denial(401, str(error))  # not remembered, as in kubelet
        answer = user or Denial(401, "invalid bearer token")
        self._users.keep(key, answer, until=now + self._serving.token_seconds)
        return answer

    async def _forbidden(self, user: User, verb: str, subresources: tuple[str, ...]) -> Denial | None:
        words = f"user={user.name}, verb={verb}, resource=nodes"
        for subresource in subresources:
            try:
                if await self._may(user, verb, subresource):
                    return None
            except (ApiError, ValueError) as error:
                told = {"user": user.name, "verb": verb, "resource": "nodes", "subresource": subresource}
                self._log.log(logging.ERROR, "Authorization error", {"err": error, **told})
                return Denial(500, f"Authorization error ({words}, subresource={subresource})")
        tried = f"[{' '.join(subresources)}]"
        told = {"user": user.name, "verb": verb, "resource": "nodes", "subresource(s)": tried}
        self._log.log(V2, "Forbidden", told)
        return Denial(403, f"Forbidden ({words}, subresource(s)={tried})\n")

    async def _may(self, user: User, verb: str, subresource: str) -> bool:
        question = access_question(user, verb, subresource, self._node_name)
        key = json.dumps(question, sort_keys=True)
        known = self._rights.get(key, self._clock.monotonic())
        if known is None:
            known = is_allowed(await self._one_of_few(lambda: self._reviews.access(question)))
            seconds = self._serving.allowed_seconds if known else self._serving.denied_seconds
            self._rights.keep(key, known, until=self._clock.monotonic() + seconds)
        return known

    async def _one_of_few(self, ask: Callable[[], Awaitable[T]]) -> T:
        """A question to the API server: few at a time, each within its deadline, and once more if nobody answered."""
        try:
            async with asyncio.timeout(_REVIEW_SECONDS), self._places:
                try:
                    return await ask()
                except Unavailable:
                    await self._clock.sleep(_AGAIN_SECONDS)
                    return await ask()
        except TimeoutError as error:
            raise Unavailable("the API server did not answer a review in time") from error
