"""How long the start of a new node took, step by step, as a kubelet measures it."""

from datetime import datetime

from agent.core.metrics import Gauge, Registry
from agent.ports import Clock

_PHASES = {  # kubelet v1.36: pkg/kubelet/metrics, NodeStartup…
    "pre_kubelet_": "before kubelet starts",
    "pre_registration_": "before registration",
    "registration_": "during registration",
    "post_registration_": "after registration",
    "": "in total",
}


class StartupLatency:
    """The steps of the first start of a node: measured for a Node that is created, not for one that was there.

    The metrics are 0 until then.
    """

    def __init__(self, clock: Clock, metrics: Registry, *, booted_at: datetime | None = None) -> None:
        self._clock = clock
        self._booted_at = booted_at
        self._began_at = clock.now()
        self._attempted_at: datetime | None = None
        self._registered_at: datetime | None = None
        self._is_over = False
        self._gauges = {
            phase: metrics.register(
                Gauge(
                    f"kubelet_node_startup_{phase}duration_seconds",
                    f"[ALPHA] Duration in seconds of node startup {words}.",
                )
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
        self._set("pre_kubelet_", self._booted_at, self._began_at)
        self._set("pre_registration_", self._began_at, self._attempted_at)
        self._set("registration_", self._attempted_at, self._registered_at)

    def ready(self) -> None:
        """The Node is ready."""
        if self._registered_at is None or self._is_over:
            return
        self._is_over = True
        now = self._clock.now()
        self._set("post_registration_", self._registered_at, now)
        self._set("", self._booted_at, now)

    def _set(self, phase: str, began: datetime | None, ended: datetime) -> None:
        if began is not None:
            self._gauges[phase].set(value=(ended - began).total_seconds())
