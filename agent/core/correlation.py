"""Events that repeat become a count, and too many become one, as client-go's EventCorrelator has it."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from agent.core.model import Object

T = TypeVar("T")

_SPAM_BURST, _SPAM_REFILL_SECONDS = 25, 300.0
_SIMILAR_MOST, _SIMILAR_SECONDS = 10, 600.0
_REMEMBERED = 4096


class Correlated(NamedTuple):
    """What to send: a new event, or a patch of the one that told the same before."""

    event: Object
    patch: Object | None


class _Told(NamedTuple):
    """What is needed to count an event once more."""

    name: str
    first: str
    times: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_seconds: float


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last_seconds: float = 0.0


class Correlator:
    """Remembers what was told about each object; time is passed in."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._similar: OrderedDict[str, _Similar] = OrderedDict()
        self._told: OrderedDict[str, _Told] = OrderedDict()

    def correlate(self, event: Object, now_seconds: float) -> Correlated | None:
        """The event or patch to send; None where this object had more than its share."""
        event, key = self._aggregated(event, now_seconds)
        patch = None
        if told := self._told.get(key):
            patch = {"count": told.times + 1, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}
            first = {"metadata": {**event["metadata"], "name": told.name}, "firstTimestamp": told.first}
            event = {**event, **first, **patch}
        _remember(self._told, key, _Told(event["metadata"]["name"], event["firstTimestamp"], event["count"]))
        return None if self._is_spam(event, now_seconds) else Correlated(event, patch)

    def _aggregated(self, event: Object, now_seconds: float) -> tuple[Object, str]:
        """From the tenth different message within ten minutes on, the messages of a reason share one event."""
        group = _key(event, "type", "reason")
        similar = self._similar.get(group)
        if similar is None or now_seconds - similar.last_seconds > _SIMILAR_SECONDS:
            similar = _Similar()
        similar.messages.add(event["message"])
        similar.last_seconds = now_seconds
        _remember(self._similar, group, similar)
        if len(similar.messages) < _SIMILAR_MOST:
            return event, _key(event, "type", "reason", "message")
        similar.messages.pop()
        return {**event, "message": f"(combined from similar events): {event['message']}"}, group

    def _is_spam(self, event: Object, now_seconds: float) -> bool:
        key = _key(event, "type")
        bucket = self._buckets.get(key) or _Bucket(_SPAM_BURST, now_seconds)
        refilled = bucket.tokens + (now_seconds - bucket.at_seconds) / _SPAM_REFILL_SECONDS
        bucket.tokens, bucket.at_seconds = min(_SPAM_BURST, refilled), now_seconds
        _remember(self._buckets, key, bucket)
        if bucket.tokens < 1:
            return True
        bucket.tokens -= 1
        return False


def _key(event: Object, *fields: str) -> str:
    about = event["involvedObject"]
    identity = (about.get(part, "") for part in ("kind", "namespace", "name", "uid", "fieldPath"))
    return "\0".join((*identity, *(event[name] for name in fields)))


def _remember(memory: OrderedDict[str, T], key: str, value: T) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)
