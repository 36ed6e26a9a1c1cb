"""Evict pods while the host is under pressure."""

import logging
from math import inf

from agent.controllers.pods import PodController
from agent.controllers.state import NodeState
from agent.core.pods.eviction import (
    eviction_reason,
    grace_seconds,
    most_urgent,
    rank_for_eviction,
    reclaim_event,
    resource_of,
)
from agent.core.pods.termination import KillRequest
from agent.machinery.runner import Scheduling
from agent.ports import Recorder

log = logging.getLogger(__name__)

_PERIOD_SECONDS = 10.0  # as kubelet


class EvictionController:
    """Evicts one pod at a time while a threshold is crossed for longer than its grace period."""

    def __init__(
        self,
        state: NodeState,
        pods: PodController,
        *,
        events: Recorder,
        scheduling: Scheduling,
    ) -> None:
        self.isolation = scheduling.isolation()
        self._pressure = state.pressure
        self._max_pod_grace_seconds = state.config.eviction.max_pod_grace_seconds
        self._pods = pods
        self._events = events
        self._queue = scheduling.queue
        self._clock = scheduling.clock

    def start(self) -> None:
        """Look for the first time after a period, as a kubelet does."""
        self._queue.add_after(self, _PERIOD_SECONDS)
        if self._pressure.is_steady:
            self._pressure.subscribe(lambda: self._queue.add(self))

    async def sync(self) -> float:
        """Evict the next pod, if a threshold is due. Returns the period, or infinity until the pressure changes."""
        threshold = most_urgent(self._pressure.due)
        if threshold is None:
            return inf if self._pressure.is_steady and not self._pressure.conditions else _PERIOD_SECONDS
        log.info("Eviction manager: attempting to reclaim", {"resourceName": resource_of(threshold)})
        self._events.record(reclaim_event(resource_of(threshold)))
        for pod in rank_for_eviction(self._pods.store.running(), threshold)[:1]:
            reason, message = eviction_reason(threshold, self._pressure.signals)
            grace = grace_seconds(pod, threshold, self._max_pod_grace_seconds)
            fields = {"signal": threshold.signal, "pod": pod.full_name}
            log.info("Eviction manager: must evict pod(s) to reclaim", fields)
            self._pods.kill(pod.uid, KillRequest(reason, message, grace, self._clock.now()))
        return _PERIOD_SECONDS
