"""Notify the service manager, as sd_notify(3) describes."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.core.model import NodeObject
from agent.core.nodestatus import find_condition
from agent.core.text import one_line
from agent.core.times import format_seconds
from agent.machinery.isolation import Isolation
from agent.ports import Clock, ServiceManager

log = logging.getLogger(__name__)

_START_SECONDS = 0.2  # how soon after the first heartbeat others know that we have started
_TICK_SECONDS = 5.0
_MOST_CHARACTERS = 500
_EXTENSION_USEC = 60_000_000  # for a start that waits for the cluster: as long as we say so, it goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """What the service manager learns of a node."""

    node: NodeObject | None = None  # as the API server has it
    lease_age_seconds: float | None = None  # None before the first renewal
    stalls: Mapping[str, str] = field(default_factory=dict)  # loop → why it seems stuck


class Notifier:
    """Sends READY with the first heartbeat, then WATCHDOG while no loop is stuck, and STATUS when it changes."""

    def __init__(self, *, node_name: str, manager: ServiceManager, clock: Clock, isolation: Isolation) -> None:
        self._name = node_name
        self._manager = manager
        self._clock = clock
        self._isolation = isolation
        self._summary: Callable[[], NodeSummary | None] = lambda: None
        self._is_ready = False
        self._asked_at = -_TICK_SECONDS
        self._status_text = ""

    def follow(self, summary: Callable[[], NodeSummary]) -> None:
        """Report this node from now on."""
        self._summary = summary

    async def run(self) -> None:
        """Notify until cancelled, if there is a service manager."""
        if not self._manager.listens:
            return
        watchdog_seconds = self._manager.watchdog_seconds or _TICK_SECONDS * 2
        while True:
            self.sync()
            await self._clock.sleep(min(watchdog_seconds / 2, _TICK_SECONDS) if self._is_ready else _START_SECONDS)

    def sync(self) -> None:
        """Notify once."""
        summary = self._summary()
        if summary and summary.stalls:
            log.error("Do not notify watchdog this iteration as a loop is stuck", dict(summary.stalls))
            return
        assignments = self._sign_of_life(summary)
        with self._isolation.attempt("status"):  # a text for people: a sign of life does not depend on it
            if (text := status_text(self._name, summary)) != self._status_text:
                self._status_text = text
                assignments.append(f"STATUS={text}")
        if assignments:
            self._manager.notify(*assignments)

    def _sign_of_life(self, summary: NodeSummary | None) -> list[str]:
        if self._is_ready:
            return ["WATCHDOG=1"]
        if summary and summary.lease_age_seconds is not None:
            self._is_ready = True
            return ["READY=1"]
        if self._clock.monotonic() - self._asked_at < _TICK_SECONDS:
            return []
        self._asked_at = self._clock.monotonic()
        return [f"EXTEND_TIMEOUT_USEC={_EXTENSION_USEC}"]

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Notify the manager of a reload that lasts as long as the context."""
        if self._is_ready:
            self._manager.notify("RELOADING=1", f"MONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")
        try:
            yield
        finally:
            if self._is_ready:
                self._manager.notify("READY=1")

    def stopping(self) -> None:
        """Notify the manager that the process is about to end."""
        self._manager.notify("STOPPING=1", f"STATUS={self._name}: ending")


def status_text(name: str, summary: NodeSummary | None) -> str:
    """One line for `systemctl status`; without summary there is no node yet."""
    if summary is None:
        return f"{name}: waiting to be let into the cluster"
    if summary.node is None:
        return f"{name}: waiting for the API server"
    ready = find_condition(summary.node.get("status", {}), "Ready")
    is_ready = ready is not None and ready["status"] == "True"
    # A second line in what others wrote into the Node would be another assignment for the service manager.
    reason = one_line(str(ready.get("message") or ""), _MOST_CHARACTERS) if ready else "no status yet"
    readiness = "Ready" if is_ready else f"NotReady ({reason})"
    if summary.lease_age_seconds is None:
        return f"{name}: {readiness}, no lease yet"
    return f"{name}: {readiness}, lease renewed {format_seconds(round(summary.lease_age_seconds))} ago"
