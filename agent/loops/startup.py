"""How long the start of a new node took, step by step, as a kubelet measures it."""

from collections.abc import Iterator
from datetime import datetime

from agent.core.tally import Family, Gauge
from agent.ports import Clock

_PHASES = {  # kubelet v1.36: pkg/kubelet/metrics, NodeStartup…
    "pre_kubelet_": "before kubelet starts",
    "pre_registration_": "before registration",
    "registration_": "during registration",
    "post_registration_": "after registration",
    "": "in total",
}


class Startup:
    """The steps of a node's first start: only a Node that was created is measured, not one that was there."""

    def __init__(self, clock: Clock, *, booted_at: datetime | None = None) -> None:
        self._clock = clock
        self._booted_at = booted_at
        self._began_at = clock.now()
        self._attempted_at: datetime | None = None
        self._registered_at: datetime | None = None
        self._is_over = False
        self._gauges = {
            phase: Gauge(
                f"kubelet_node_startup_{phase}duration_seconds", f"[ALPHA] Duration in seconds of node startup {words}."
            )
            for phase, words in _PHASES.items()
        }

    def attempted(self) -> None:
        """A registration is tried."""
        self._attempted_at = self._attempted_at or self._clock.now()

    def registered(self) -> None:
        """The Node was created."""
        if self._attempted_at is None or self._registered_at is not None:
            return
        self._registered_at = self._clock.now()
        self._tell("pre_kubelet_", self._booted_at, self._began_at)
        self._tell("pre_registration_", self._began_at, self._attempted_at)
        self._tell("registration_", self._attempted_at, self._registered_at)

    def ready(self) -> None:
        """The Node is ready."""
        if self._registered_at is None or self._is_over:
            return
        self._is_over = True
        now = self._clock.now()
        self._tell("post_registration_", self._registered_at, now)
        self._tell("", self._booted_at, now)

    def families(self) -> Iterator[Family]:
        """The same as metrics; 0 is what was not measured."""
        for gauge in self._gauges.values():
            yield gauge.family()

    def _tell(self, phase: str, began: datetime | None, ended: datetime) -> None:
        if began is not None:
            self._gauges[phase].set(value=(ended - began).total_seconds())
