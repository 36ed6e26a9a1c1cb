"""Deliver events, one at a time, without ever holding up who records them."""

import asyncio
import logging
from collections import deque

from agent.core.correlation import Correlated, Correlator
from agent.core.events import Happening, event_object
from agent.core.model import Object
from agent.core.schedule import Pace
from agent.core.tally import Counter
from agent.klog import V2
from agent.loops.retry import delivering_event
from agent.loops.weather import Weather
from agent.machinery.isolation import Isolation, UnexpectedErrors
from agent.ports import ApiError, Clock, EventApi, NotFound

log = logging.getLogger(__name__)

_QUEUE_LENGTH = 1000  # as client-go's broadcaster: what does not fit is dropped


class EventLoop:
    """A recorder for the node's events, and the task that sends them."""

    def __init__(
        self,
        *,
        node_name: str,
        events: EventApi,
        weather: Weather,
        clock: Clock,
        pace: Pace,
        outcomes: Counter | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._name = node_name
        self._events = events
        self._weather = weather
        self._clock = clock
        self._pace = pace
        self._isolation = isolation or UnexpectedErrors(node_name, clock).isolation("events")
        self._overflows = False
        self._queue: asyncio.Queue[Object] = asyncio.Queue(_QUEUE_LENGTH)
        self._correlator = Correlator()
        self._recorded, self._queued, self._taken = 0, 0, 0
        self._gone: deque[tuple[int, str]] = deque()  # UIDs, and how many events were queued before
        self.outcomes = outcomes or Counter(
            "fake_kubelet_events_total", "Events that were sent or dropped.", ("outcome",)
        )

    def record(self, event: Happening, about: Object | None = None) -> None:
        """Queue an event about an object, or about the Node where none is given; never waits."""
        log.log(V2, "Recording event message for node", {"node": self._name, "event": event.reason})
        self._recorded += 1
        with self._isolation.attempt(event=event.reason) as attempt:
            self._enqueue(event, event_object(self._name, event, self._clock.now(), self._recorded, about=about))
        if attempt.retry_seconds is not None:
            self.outcomes.add("dropped")

    def _enqueue(self, event: Happening, told: Object) -> None:
        try:
            self._queue.put_nowait(told)
        except asyncio.QueueFull:
            self.outcomes.add("dropped")
            if not self._overflows:  # said once, until all that waits is sent
                log.error("Unable to record event: too many queued events, dropped event", {"event": event.reason})
            self._overflows = True
        else:
            self._queued += 1

    def forget(self, uid: str) -> None:
        """An object is gone: when those of its events that wait have had their turn, none will be repeated."""
        self._gone.append((self._queued, uid))
        self._tidy()

    async def run(self) -> None:
        """Send what is recorded, forever."""
        while True:
            event = await self._queue.get()
            with self._isolation.attempt(event=event["reason"], about=event["metadata"]["name"]) as attempt:
                await self._handle(event)
            if attempt.retry_seconds is not None:  # as one that cannot be sent: another try would be no better
                self.outcomes.add("dropped")
            self._queue.task_done()

    async def _handle(self, event: Object) -> None:
        self._taken += 1
        self._overflows = self._overflows and not self._queue.empty()
        correlated = self._correlator.correlate(event, self._clock.monotonic())
        self._tidy()
        if correlated:
            if seconds := self._pace.wait_seconds(self._clock.monotonic()):
                await self._clock.sleep(seconds)
            await self._deliver(correlated)

    async def drained(self) -> None:
        """Return when everything recorded so far is sent or given up."""
        await self._queue.join()

    def _tidy(self) -> None:
        while self._gone and self._gone[0][0] <= self._taken:
            self._correlator.forget(self._gone.popleft()[1])

    async def _deliver(self, correlated: Correlated) -> None:
        """Send one event; one that cannot be sent is dropped, as kubelet does."""
        try:
            async for attempt in delivering_event(self._weather):
                with attempt:
                    await self._send(correlated)
        except ApiError as error:
            self.outcomes.add("dropped")
            log.error("Unable to write event", {"err": error, "event": correlated.event["reason"]})
        else:
            self.outcomes.add("sent")

    async def _send(self, correlated: Correlated) -> None:
        if correlated.patch:
            try:
                await self._events.patch(correlated.event, correlated.patch)
            except NotFound:
                log.debug("Event to repeat has expired", {"event": correlated.event["reason"]})
            else:
                return
        await self._events.create(correlated.event)
