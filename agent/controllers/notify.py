"""Tell the service manager how we are."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent.core.model import NodeObject
from agent.core.nodestatus import find_condition
from agent.core.times import format_seconds
from agent.machinery.isolation import Isolation
from agent.ports import Clock, ServiceManager

log = logging.getLogger(__name__)

_START_SECONDS = 0.2  # how soon after the first heartbeat others know that we have started
_TICK_SECONDS = 5.0
_MOST_WORDS = 500
_EXTENSION_USEC = 60_000_000  # for a start that waits for the cluster: as long as we say so, it goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHealth:
    """How a node is doing."""

    node: NodeObject | None = None  # as the API server has it
    lease_age_seconds: float | None = None  # None before the first renewal
    stalls: Mapping[str, str] = field(default_factory=dict)  # loop → why it seems stuck


class NotifyLoop:
    """Says READY with the first heartbeat, then WATCHDOG while no loop is stuck, and STATUS in words all the time."""

    def __init__(self, *, node_name: str, manager: ServiceManager, clock: Clock, isolation: Isolation) -> None:
        self._name = node_name
        self._manager = manager
        self._clock = clock
        self._isolation = isolation
        self._vitals: Callable[[], NodeHealth | None] = lambda: None
        self._is_ready = False
        self._asked_at = -_TICK_SECONDS
        self._words = ""

    def follow(self, vitals: Callable[[], NodeHealth]) -> None:
        """From now on, tell of this."""
        self._vitals = vitals

    async def run(self) -> None:
        """Tell forever, if there is anybody who listens."""
        if not self._manager.listens:
            return
        watchdog_seconds = self._manager.watchdog_seconds or _TICK_SECONDS * 2
        while True:
            self.sync()
            await self._clock.sleep(min(watchdog_seconds / 2, _TICK_SECONDS) if self._is_ready else _START_SECONDS)

    def sync(self) -> None:
        """Tell once."""
        vitals = self._vitals()
        if vitals and vitals.stalls:
            log.error("Do not notify watchdog this iteration as a loop is stuck", dict(vitals.stalls))
            return
        news = self._sign_of_life(vitals)
        with self._isolation.attempt("words"):  # words are for people: a sign of life does not depend on them
            if (words := in_words(self._name, vitals)) != self._words:
                self._words = words
                news.append(f"STATUS={words}")
        if news:
            self._manager.tell(*news)

    def _sign_of_life(self, vitals: NodeHealth | None) -> list[str]:
        if self._is_ready:
            return ["WATCHDOG=1"]
        if vitals and vitals.lease_age_seconds is not None:
            self._is_ready = True
            return ["READY=1"]
        if self._clock.monotonic() - self._asked_at < _TICK_SECONDS:
            return []
        self._asked_at = self._clock.monotonic()
        return [f"EXTEND_TIMEOUT_USEC={_EXTENSION_USEC}"]

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """What is done within is a reload."""
        if self._is_ready:
            self._manager.tell("RELOADING=1", f"MONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}")
        try:
            yield
        finally:
            if self._is_ready:
                self._manager.tell("READY=1")

    def stopping(self) -> None:
        """We are about to end."""
        self._manager.tell("STOPPING=1", f"STATUS={self._name}: ending")


def in_words(name: str, vitals: NodeHealth | None) -> str:
    """One line for `systemctl status`; without vitals there is no node yet."""
    if vitals is None:
        return f"{name}: waiting to be let into the cluster"
    if vitals.node is None:
        return f"{name}: waiting for the API server"
    ready = find_condition(vitals.node.get("status", {}), "Ready")
    is_ready = ready is not None and ready["status"] == "True"
    told = "Ready" if is_ready else f"NotReady ({_on_one_line(ready.get('message')) if ready else 'no status yet'})"
    if vitals.lease_age_seconds is None:
        return f"{name}: {told}, no lease yet"
    return f"{name}: {told}, lease renewed {format_seconds(round(vitals.lease_age_seconds))} ago"


def _on_one_line(message: object) -> str:
    """What others wrote into the Node: a second line would be another assignment for the service manager."""
    return "".join(char if char.isprintable() else " " for char in str(message or "")[:_MOST_WORDS])
