"""Events that repeat become a count, and too many become one, as client-go's EventCorrelator has it."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from agent.core.model import Object

K = TypeVar("K")
V = TypeVar("V")

_SPAM_BURST, _SPAM_REFILL_SECONDS = 25, 300.0
_SIMILAR_MOST, _SIMILAR_SECONDS = 10, 600.0
# client-go remembers 4096 events, of whatever objects; four of them are about one pod that comes and goes.
_MOST_OBJECTS, _MOST_EVENTS = 1024, 256


class Correlated(NamedTuple):
    """What to send: a new event, or a patch of the one that told the same before."""

    event: Object
    patch: Object | None


class _Told(NamedTuple):
    """What is needed to count an event once more."""

    name: str
    first: str
    times: int


class _Bucket(NamedTuple):
    """How many events may still be told, as of a moment."""

    tokens: float
    at_seconds: float


class _Similar(NamedTuple):
    """The different messages of one reason, and when the last of them came."""

    messages: tuple[int, ...]  # their hashes: others may have written a megabyte of each
    last_seconds: float


@dataclass(slots=True)
class _Memory:
    """What was told about one object."""

    buckets: dict[str, _Bucket] = field(default_factory=dict)  # by type
    similar: dict[int, _Similar] = field(default_factory=dict)  # by the hash of type and reason
    told: dict[tuple[int, ...], _Told] = field(default_factory=dict)  # by hashes, too


class Correlator:
    """Remembers what was told about each object; time is passed in."""

    def __init__(self) -> None:
        self._objects: dict[str, _Memory] = {}

    def correlate(self, event: Object, now_seconds: float) -> Correlated | None:
        """The event or patch to send; None where this object had more than its share."""
        about = event["involvedObject"]
        identity = about.get("uid") or about["name"]  # a node's own events have its name for a UID
        memory = self._objects.get(identity) or _Memory()
        _remember(self._objects, identity, memory, most=_MOST_OBJECTS)
        event, key = _aggregated(memory, event, now_seconds)
        patch = None
        if told := memory.told.get(key):
            patch = {"count": told.times + 1, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}
            first = {"metadata": {**event["metadata"], "name": told.name}, "firstTimestamp": told.first}
            event = {**event, **first, **patch}
        told = _Told(event["metadata"]["name"], event["firstTimestamp"], event["count"])
        _remember(memory.told, key, told, most=_MOST_EVENTS)
        return None if _is_spam(memory, event["type"], now_seconds) else Correlated(event, patch)

    def forget(self, uid: str) -> None:
        """An object is gone, and nobody will tell of it again."""
        self._objects.pop(uid, None)


def _aggregated(memory: _Memory, event: Object, now_seconds: float) -> tuple[Object, tuple[int, ...]]:
    """From the tenth different message within ten minutes on, the messages of a reason share one event."""
    group, message = hash((event["type"], event["reason"])), hash(event["message"])
    similar = memory.similar.get(group)
    known = similar.messages if similar and now_seconds - similar.last_seconds <= _SIMILAR_SECONDS else ()
    messages = known if message in known else (*known, message)
    _remember(memory.similar, group, _Similar(messages[: _SIMILAR_MOST - 1], now_seconds), most=_MOST_EVENTS)
    if len(messages) < _SIMILAR_MOST:
        return event, (group, message, hash(event["involvedObject"].get("fieldPath", "")))
    return {**event, "message": f"(combined from similar events): {event['message']}"}, (group,)


def _is_spam(memory: _Memory, kind: str, now_seconds: float) -> bool:
    tokens, at_seconds = memory.buckets.get(kind) or _Bucket(_SPAM_BURST, now_seconds)
    tokens = min(_SPAM_BURST, tokens + (now_seconds - at_seconds) / _SPAM_REFILL_SECONDS)
    is_spam = tokens < 1
    memory.buckets[kind] = _Bucket(tokens if is_spam else tokens - 1, now_seconds)
    return is_spam


def _remember(memory: dict[K, V], key: K, value: V, *, most: int) -> None:
    """Keep the entries that were used last, in that order; an OrderedDict would take half a KiB more."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > most:
        del memory[next(iter(memory))]
