"""Evict pods while the host is under pressure."""

import logging
from collections.abc import Callable, Sequence

from agent.controllers.host_monitor import PressureMonitor
from agent.core.config import Eviction
from agent.core.pods.eviction import (
    eviction_reason,
    grace_seconds,
    most_urgent,
    rank_for_eviction,
    reclaim_event,
    resource_of,
)
from agent.core.pods.info import PodInfo
from agent.core.pods.termination import KillRequest
from agent.ports import Clock, Recorder

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 10.0  # as kubelet


class EvictionLoop:
    """Evicts one pod at a time while a threshold is crossed for longer than its grace period."""

    def __init__(
        self,
        *,
        eviction: Eviction,
        pressure: PressureMonitor,
        pods: Callable[[], Sequence[PodInfo]],
        kill: Callable[[str, KillRequest], None],
        events: Recorder,
        clock: Clock,
    ) -> None:
        self._eviction = eviction
        self._pressure = pressure
        self._pods = pods
        self._kill = kill
        self._events = events
        self._clock = clock

    async def run(self) -> None:
        """Sync forever, with kubelet's period."""
        while True:
            await self._clock.sleep(_PERIOD_SECONDS)
            self.sync()

    def sync(self) -> None:
        """Evict the next pod, if a threshold is due."""
        threshold = most_urgent(self._pressure.due)
        if threshold is None:
            return
        log.info("Eviction manager: attempting to reclaim", {"resourceName": resource_of(threshold)})
        self._events.record(reclaim_event(resource_of(threshold)))
        for pod in rank_for_eviction(self._pods(), threshold)[:1]:
            reason, message = eviction_reason(threshold, self._pressure.signals)
            grace = grace_seconds(pod, threshold, self._eviction.max_pod_grace_seconds)
            fields = {"signal": threshold.signal, "pod": pod.full_name}
            log.info("Eviction manager: must evict pod(s) to reclaim", fields)
            self._kill(pod.uid, KillRequest(reason, message, grace, self._clock.now()))
