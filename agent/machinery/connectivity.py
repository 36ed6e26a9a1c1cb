"""Whether the API server can be reached: the first request that gets through after an outage ends it for all."""

import asyncio
import logging
from collections.abc import Callable

from agent.core.schedule import TokenBucket
from agent.core.times import format_seconds
from agent.ports import ApiError, Clock

log = logging.getLogger(__name__)

_OUTAGE_SECONDS = 1.0  # requests that fail for less than this are no outage
_WAKES_PER_SECOND, _WAKES_AT_ONCE = 200.0, 50  # an API server that is back is not overrun by all nodes at once


class Connectivity:
    """Wakes those who wait for the API server as soon as somebody gets through, paced by a token bucket.

    It logs when an outage begins and when it ends, once for all who notice it.
    """

    def __init__(self, clock: Clock, missed_renewals: Callable[[], int] = lambda: 0) -> None:
        self._clock = clock
        self._missed_renewals = missed_renewals
        self._missed_before = 0
        self._answered_at = clock.monotonic()
        self._unanswered_since: float | None = None  # since then, no request was answered
        self._is_outage = False
        self._recovered = asyncio.Event()
        self._waiting: dict[Callable[[float], None], None] = {}  # a set that keeps the order
        self._pace = TokenBucket(_WAKES_PER_SECOND, _WAKES_AT_ONCE)

    def unanswered(self, error: ApiError, *, waited_seconds: float = 0.0) -> None:
        """Take in that no API server answered a request, after it had been waited for so long."""
        now = self._clock.monotonic()
        if self._unanswered_since is None:
            self._unanswered_since = max(now - waited_seconds, self._answered_at)
            self._missed_before = self._missed_renewals()
        if not self._is_outage and now - self._unanswered_since >= _OUTAGE_SECONDS:
            self._is_outage = True
            log.warning("API server unreachable", {"err": error} | ({"hint": error.hint} if error.hint else {}))

    def answered(self) -> None:
        """Take in that the API server answered a request, whatever it said."""
        self._answered_at = self._clock.monotonic()
        if self._unanswered_since is not None:
            if self._is_outage:
                outage = format_seconds(round(self._answered_at - self._unanswered_since))
                missed = self._missed_renewals() - self._missed_before
                log.info("API server reachable again", {"unreachableFor": outage, "missedLeaseRenewals": missed})
            self._unanswered_since, self._is_outage = None, False

    def on_recovered(self, wake: Callable[[float], None]) -> None:
        """Call this once after the next recovery, with the seconds to wait before the next try."""
        self._waiting[wake] = None

    async def wait_or_recovered(self, seconds: float) -> None:
        """Wait so long, or until somebody gets through."""
        await self._clock.wait(self._recovered, seconds)

    def notify_recovered(self) -> None:
        """Wake all who wait: a request got through after others had failed."""
        self._recovered.set()
        self._recovered = asyncio.Event()
        waiting, self._waiting = self._waiting, {}
        now = self._clock.monotonic()
        for wake in waiting:
            wake(self._pace.wait_seconds(now))
