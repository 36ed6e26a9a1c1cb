"""Make pods go while the host is short of something."""

import logging
from collections.abc import Callable, Sequence

from agent.core.config import Eviction
from agent.core.eviction import Threshold
from agent.core.model import Object
from agent.core.pods.ending import Order
from agent.core.pods.eviction import attempt, due, grace_seconds, most_urgent, ranked, verdict
from agent.loops.observe import Observer
from agent.ports import Clock, Recorder

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 10.0  # as kubelet


class EvictionLoop:
    """Ends one pod at a time, as long as a threshold is crossed."""

    def __init__(
        self,
        *,
        eviction: Eviction,
        observer: Observer,
        pods: Callable[[], Sequence[Object]],
        end: Callable[[Object, Order], None],
        events: Recorder,
        clock: Clock,
    ) -> None:
        self._eviction = eviction
        self._observer = observer
        self._pods = pods
        self._end = end
        self._events = events
        self._clock = clock
        self._since: dict[Threshold, float] = {}

    async def run(self) -> None:
        """Look forever, at kubelet's rhythm."""
        while True:
            await self._clock.sleep(_PERIOD_SECONDS)
            self.sync()

    def sync(self) -> None:
        """Look once, and end the pod whose turn it is."""
        now = self._clock.monotonic()
        self._since = {threshold: self._since.get(threshold, now) for threshold in self._observer.met}
        threshold = most_urgent(due(self._since, now))
        if threshold is None:
            return
        self._events.record(attempt(threshold))
        for pod in ranked(self._pods(), threshold)[:1]:
            reason, message = verdict(threshold, self._observer.signals)
            grace = grace_seconds(pod, threshold, self._eviction.max_pod_grace_seconds)
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            log.info("Eviction manager: must evict pod(s) to reclaim", {"signal": threshold.signal, "pod": name})
            self._end(pod, Order(reason, message, grace, self._clock.now()))
