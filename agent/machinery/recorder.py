"""Record events, and send them without ever holding up who records them."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from agent.core.events import Correlated, Correlator, EventLike, event_object
from agent.core.metrics import Counter
from agent.core.model import Object
from agent.core.schedule import TokenBucket, jittered
from agent.klog import V2
from agent.machinery.backoff import ASKED_JITTER
from agent.machinery.runner import Scheduling
from agent.ports import ApiError, EventApi, NotFound, Unavailable

log = logging.getLogger(__name__)

# client-go: tools/record
_QUEUE_LENGTH = 1000  # what does not fit is dropped
_TRIES = 12
_RETRY_SECONDS = 10.0
_MOST_HELD_SECONDS = 30.0
_HELD_SECONDS = 0.5  # between two looks whether others still go first


class EventRecorder:
    """Sends the events of one node in their order, those that repeat as a count.

    An event that the API server does not take is dropped, as a kubelet does.
    """

    def __init__(
        self,
        node_name: str,
        events: EventApi,
        *,
        pace: TokenBucket,
        scheduling: Scheduling,
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make a recorder whose events wait, though not for ever, while `gives_way` says that others go first."""
        self.isolation = scheduling.isolation()
        self._name = node_name
        self._events = events
        self._pace = pace
        self._queue = scheduling.queue
        self._clock = scheduling.clock
        self._rand = scheduling.dependencies.rand
        self._connectivity = scheduling.dependencies.connectivity
        self._outcomes = scheduling.dependencies.metrics.register(
            Counter("fake_kubelet_events_total", "Events that were sent or dropped.", ("outcome",))
        )
        self._gives_way = gives_way
        self._held_since: float | None = None  # None while nobody goes first
        self._waiting: list[Object] = []  # a deque would take half a KiB while it is empty
        self._is_full = False
        self._correlator = Correlator()
        self._recorded = 0
        self._taken = 0
        self._forgotten: list[tuple[int, str]] = []  # UIDs, and how many events had been queued before
        self._sending: Correlated | None = None
        self._tries = 0
        self._send_at = 0.0
        self._drained: asyncio.Event | None = None  # while somebody waits for it

    def record(self, event: EventLike, about: Object | None = None) -> None:
        """Queue an event about an object, or about the Node where that is None; never waits."""
        log.log(V2, "Recording event message for node", {"node": self._name, "event": event.reason})
        self._recorded += 1
        with self.isolation.attempt(event=event.reason) as attempt:
            serialised = event_object(self._name, event, self._clock.now(), self._recorded, about=about)
            # What is held is not lost for it: a kubelet would have sent some by now.
            if len(self._waiting) < (_QUEUE_LENGTH if self._held_since is None else 2 * _QUEUE_LENGTH):
                if not self._waiting:
                    self._queue.add(self)
                self._waiting.append(serialised)
            else:
                self._outcomes.add("dropped")
                if not self._is_full:  # logged once, until all that waits is sent
                    log.error("Unable to record event: too many queued events, dropped event", {"event": event.reason})
                self._is_full = True
        if attempt.retry_seconds is not None:
            self._outcomes.add("dropped")

    def forget(self, uid: str) -> None:
        """Do not count on events about this object once those that wait are sent: it is gone."""
        self._forgotten.append((self._taken + len(self._waiting), uid))
        self._forget_taken()

    async def drained(self) -> None:
        """Return when everything recorded so far is sent or dropped."""
        while self._waiting or self._sending:
            self._drained = asyncio.Event()
            self._queue.add(self)
            await self._drained.wait()

    async def sync(self) -> float:
        """Send the next event once. Returns the seconds until the next call."""
        if self._is_held():
            return _HELD_SECONDS
        if self._sending is None and self._waiting:
            event = self._waiting.pop(0)
            self._taken += 1
            with self._dropping(event):
                self._sending = self._correlator.correlate(event, self._clock.monotonic())
            if self._sending:
                self._send_at = self._clock.monotonic() + self._pace.wait_seconds(self._clock.monotonic())
            self._is_full = self._is_full and bool(self._waiting)
            self._forget_taken()
        if self._sending and self._clock.monotonic() >= self._send_at:
            with self._dropping(self._sending.event):
                await self._send(self._sending)
        if self._sending:
            return max(0.0, self._send_at - self._clock.monotonic())
        if self._waiting:
            return 0.0
        if self._drained:
            self._drained.set()
        return inf

    def _is_held(self) -> bool:
        """Return whether others go first now: not for ever, and not while somebody waits for the last event."""
        if self._drained or not self._gives_way():
            self._held_since = None
            return False
        now = self._clock.monotonic()
        if self._held_since is None:
            self._held_since = now
        return now < self._held_since + _MOST_HELD_SECONDS

    @contextmanager
    def _dropping(self, event: Object) -> Iterator[None]:
        """Drop an event that fails for a reason that nobody expected: another try would be no better."""
        with self.isolation.attempt(event=event["reason"], about=event["metadata"]["name"]) as attempt:
            yield
        if attempt.retry_seconds is not None:
            self._end("dropped")

    async def _send(self, correlated: Correlated) -> None:
        self._tries += 1
        try:
            await self._create_or_patch(correlated)
        except ApiError as error:
            if isinstance(error, Unavailable) and self._tries < _TRIES:
                self._send_at = self._clock.monotonic() + self._retry_seconds(error)
                return
            log.error("Unable to write event", {"err": error, "event": correlated.event["reason"]})
            self._end("dropped")
        else:
            self._end("sent")

    def _retry_seconds(self, error: ApiError) -> float:
        """Return when to try again: the first time at a random moment, and at once when the API server is back."""
        if asked_seconds := error.retry_after_seconds:
            return jittered(max(asked_seconds, _RETRY_SECONDS), ASKED_JITTER, self._rand())
        self._connectivity.on_recovered(self._on_recovered)
        return _RETRY_SECONDS * (self._rand() if self._tries == 1 else 1.0)

    def _on_recovered(self, delay_seconds: float) -> None:
        if self._tries:
            self._send_at = self._clock.monotonic() + delay_seconds
            self._queue.add_after(self, delay_seconds)

    def _end(self, outcome: str) -> None:
        self._outcomes.add(outcome)
        self._sending = None
        self._tries = 0

    async def _create_or_patch(self, correlated: Correlated) -> None:
        if correlated.patch:
            try:
                await self._events.patch(correlated.event, correlated.patch)
            except NotFound:
                log.debug("Event to repeat has expired", {"event": correlated.event["reason"]})
            else:
                return
        await self._events.create(correlated.event)

    def _forget_taken(self) -> None:
        while self._forgotten and self._forgotten[0][0] <= self._taken:
            self._correlator.forget(self._forgotten.pop(0)[1])
