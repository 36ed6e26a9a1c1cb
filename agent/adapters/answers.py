"""Decode the answers of the API server: bytes become an object of bounded size and depth, or an error of ours."""

from contextlib import suppress
from typing import Any

import msgspec

from agent.core.model import Object
from agent.core.text import one_line
from agent.klog import quoted
from agent.ports import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    NotFound,
    Rejected,
    Unauthorized,
    Unavailable,
)

Content = bytes | bytearray
MOST_BYTES = 3 * 2**20  # as much as an API server takes; etcd takes 1.5 MiB, in a form that is shorter than JSON
MOST_PAGE_BYTES = 8 * 2**20
_MOST_PARTS = 200_000  # a value in a dict or list takes up to 100 times as much memory as its two bytes in JSON
_MOST_DEPTH = 100  # a pod has 15; functions that walk through an object call themselves at each level
_CONTAINERS = (dict, list)
_MOST_QUOTED_BYTES = 200
# client-go's words
_TOO_MANY_REQUESTS = "the server has received too many requests and has asked us to try again later"
_MOST_RETRY_AFTER_SECONDS = 10.0  # a quarter of a lease, by default; API servers ask for 1 s
_ERRORS = {401: Unauthorized, 403: Forbidden, 404: NotFound, 410: Expired}
# An API server takes 9999-12-31T23:59:59-23:59 for a time, and prints in UTC what neither it nor a client can read: an
# object that was read could not be written again. These are all that there are.
_BEYOND_THE_CALENDAR = ((b'"10000-01-01T', b'"9999-12-31T'), (b'"-0001-12-31T', b'"0001-01-01T'))
_FAULTS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Malformed(Unavailable):
    """The answer is none of an API server; perhaps somebody else sent it."""


class TooLarge(Unavailable):
    """The answer has more bytes than any object; a list may fit in smaller pages."""


class PageMetadata(msgspec.Struct, rename={"version": "resourceVersion", "token": "continue"}):
    """The metadata of a list."""

    version: str
    token: str | None = None


class Page(msgspec.Struct):
    """A page of a list; its items are decoded one by one."""

    metadata: PageMetadata
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


def decoded(content: Content) -> Object:
    """Decode an answer, a success or not; raise Malformed if it is no object."""
    answer = None
    for beyond, end in _BEYOND_THE_CALENDAR:
        if beyond in content:
            content = content.replace(beyond, end)
    containers = content.count(b"{") + content.count(b"[")
    if len(content) <= _MOST_PARTS or containers + content.count(b",") <= _MOST_PARTS:
        with suppress(*_FAULTS):
            answer = msgspec.json.decode(content)
    # Only containers that hold something can hold others: most objects have so few that there is no need to walk.
    can_be_too_deep = (
        containers > _MOST_DEPTH and containers - content.count(b"{}") - content.count(b"[]") > _MOST_DEPTH
    )
    if not isinstance(answer, dict) or (can_be_too_deep and _is_too_deep(answer)):
        raise Malformed("the answer is no Kubernetes object")
    return answer


def page(content: Content) -> Page:
    """Decode an answer that is a page of a list; raise Malformed if it is none."""
    try:
        return msgspec.json.decode(content, type=Page)
    except _FAULTS as error:
        raise Malformed(f"the answer is no list: {error}") from None


def watch_event(line: bytes) -> WatchEvent:
    """Decode a line of a watch; raise Malformed if it is no event."""
    try:
        return msgspec.json.decode(line, type=WatchEvent)
    except _FAULTS as error:
        raise Malformed(f"the line is no event of a watch: {error}") from None


def error_of(status: int, content: Content, retry_after: str | None) -> ApiError:
    """Return the error that an answer means which is no success."""
    with suppress(Malformed):
        answer = decoded(content)
        if answer.get("kind") == "Status":
            return refusal(status, answer, retry_after)
    retry_after_seconds = _retry_after_seconds(retry_after)
    if status == 429:  # an API server that is too busy says so without a Status
        return Unavailable(_TOO_MANY_REQUESTS, retry_after_seconds=retry_after_seconds)
    text = quoted(one_line(content[:_MOST_QUOTED_BYTES].decode("utf-8", "replace")))
    reason = f"an error on the server ({text}) has prevented the request from succeeding (HTTP {status})"
    return Malformed(reason, retry_after_seconds=retry_after_seconds)


def refusal(status: int, answer: Object, retry_after: str | None) -> ApiError:
    """Return the error that a Status means; its Retry-After counts up to a limit."""
    message = answer.get("message")
    message = one_line(message) if isinstance(message, str) and message else f"HTTP {status}"
    if status == 429 or status >= 500 or answer.get("kind") != "Status":
        return Unavailable(message, retry_after_seconds=_retry_after_seconds(retry_after))
    if status == 409:
        return (AlreadyExists if answer.get("reason") == "AlreadyExists" else Conflict)(message)
    return _ERRORS.get(status, Rejected)(message)


def _is_too_deep(answer: Object) -> bool:
    """Return whether containers that are not empty stand in more than _MOST_DEPTH others."""
    level: list[Any] = [answer]
    for _ in range(_MOST_DEPTH):
        children = (part.values() if type(part) is dict else part for part in level)
        level = [child for part in children for child in part if child and type(child) in _CONTAINERS]
        if not level:
            return False
    return True


def _retry_after_seconds(retry_after: str | None) -> float | None:
    """Return the seconds of the header, up to a limit: no answer may silence a heartbeat for long."""
    if not retry_after or not retry_after.isascii() or not retry_after.isdecimal():
        return None
    return min(float(retry_after[:9]), _MOST_RETRY_AFTER_SECONDS)
