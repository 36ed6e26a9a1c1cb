"""Make pods go while the host is short of something."""

import logging
from collections.abc import Callable, Sequence

from agent.core.config import Eviction
from agent.core.pods.ending import Order
from agent.core.pods.eviction import attempt, grace_seconds, most_urgent, ranked, resource_of, verdict
from agent.core.pods.info import PodInfo
from agent.loops.observe import Observer
from agent.ports import Clock, Recorder

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 10.0  # as kubelet


class EvictionLoop:
    """Ends one pod at a time, as long as a threshold is crossed for longer than its grace period."""

    def __init__(
        self,
        *,
        eviction: Eviction,
        observer: Observer,
        pods: Callable[[], Sequence[PodInfo]],
        kill: Callable[[str, Order], None],
        events: Recorder,
        clock: Clock,
    ) -> None:
        self._eviction = eviction
        self._observer = observer
        self._pods = pods
        self._kill = kill
        self._events = events
        self._clock = clock

    async def run(self) -> None:
        """Look forever, at kubelet's rhythm."""
        while True:
            await self._clock.sleep(_PERIOD_SECONDS)
            self.sync()

    def sync(self) -> None:
        """Look once, and end the pod whose turn it is."""
        threshold = most_urgent(self._observer.due)
        if threshold is None:
            return
        log.info("Eviction manager: attempting to reclaim", {"resourceName": resource_of(threshold)})
        self._events.record(attempt(resource_of(threshold)))
        for pod in ranked(self._pods(), threshold)[:1]:
            reason, message = verdict(threshold, self._observer.signals)
            grace = grace_seconds(pod, threshold, self._eviction.max_pod_grace_seconds)
            fields = {"signal": threshold.signal, "pod": pod.full_name}
            log.info("Eviction manager: must evict pod(s) to reclaim", fields)
            self._kill(pod.uid, Order(reason, message, grace, self._clock.now()))
