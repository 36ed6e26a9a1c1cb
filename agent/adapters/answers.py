"""The API server's answers: bytes → an object or an error of ours."""

import msgspec

from agent.core.model import Object
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

MOST_BYTES = 8 * 2**20  # etcd takes 1.5 MiB for an object; a list of pods is larger
_MOST_WORDS = 1000
_MOST_PATIENCE_SECONDS = 10.0  # a quarter of a lease, by default; API servers ask for 1 s
_ERRORS = {401: Unauthorized, 403: Forbidden, 404: NotFound, 410: Expired}


def decoded(status: int, content: bytes) -> Object:
    """The answer as an object, whatever it means."""
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unavailable(f"the answer is no Kubernetes object (HTTP {status})")
    return answer


def refusal(status: int, answer: Object, retry_after: str | None) -> ApiError:
    """What an answer means that is no success; a server may ask for patience, within reason."""
    message = str(answer.get("message") or f"HTTP {status}")[:_MOST_WORDS]
    if status == 429 or status >= 500 or answer.get("kind") != "Status":
        return Unavailable(message, retry_after_seconds=_patience(retry_after))
    if status == 409:
        return (AlreadyExists if answer.get("reason") == "AlreadyExists" else Conflict)(message)
    return _ERRORS.get(status, Rejected)(message)


def _patience(retry_after: str | None) -> float | None:
    """Seconds as in the header; no answer, true or false, may silence a heartbeat for long."""
    if not retry_after or not retry_after.isascii() or not retry_after.isdecimal():
        return None
    return min(float(retry_after[:9]), _MOST_PATIENCE_SECONDS)
