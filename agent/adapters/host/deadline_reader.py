"""Readings that may fail or hang, made so that only they suffer."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agent.adapters.host.sensor_metrics import SensorMetrics

log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 1.0

Readings = Mapping[str, Callable[[], Mapping[str, Any]]]  # sensor → what reads some values


class _Reading(NamedTuple):
    """How one reading went."""

    sensor: str
    took_seconds: float
    failed: bool


class DeadlineReader:
    """Readings of the host, made together in one thread; a good value stands until a better one comes."""

    def __init__(
        self,
        readings: Readings,
        *,
        deadline_seconds: float = _DEADLINE_SECONDS,
        first_deadline_seconds: float | None = None,
        metrics: SensorMetrics | None = None,
    ) -> None:
        self._readings = readings
        self._deadline_seconds = deadline_seconds
        self._first_deadline_seconds = first_deadline_seconds or deadline_seconds  # there is no last value to keep yet
        self._metrics = metrics or SensorMetrics()
        self._pending: asyncio.Future[list[_Reading]] | None = None
        self._under_way = ""  # the reading that is made at the moment
        self._values: dict[str, Any] = {}
        self._faults: dict[str, str] = {}

    @property
    def hangs(self) -> bool:
        """Whether a reading has not come back."""
        return self._pending is not None and not self._pending.done()

    async def read(self) -> Mapping[str, Any]:
        """The values, read now if that takes no longer than the deadline; a reading that hangs is not started again."""
        if self.hangs:
            return self._values
        deadline_seconds = self._deadline_seconds if self._values else self._first_deadline_seconds
        self._pending = asyncio.get_running_loop().run_in_executor(None, self._read_all)
        self._pending.add_done_callback(self._count)  # in the event loop, however late it comes
        try:
            async with asyncio.timeout(deadline_seconds):
                await asyncio.shield(self._pending)
        except TimeoutError:
            told = {"sensor": self._under_way, "seconds": deadline_seconds}
            log.error("Host does not answer, keeping its last values", told)
            self._metrics.hangs(self._under_way)
        return self._values

    def _read_all(self) -> list[_Reading]:
        return [self._read(name, reading) for name, reading in self._readings.items()]

    def _read(self, name: str, reading: Callable[[], Mapping[str, Any]]) -> _Reading:
        self._under_way, began = name, time.monotonic()
        try:
            self._values |= reading()
        except Exception as error:  # psutil's errors, and whatever else odd text in /proc may lead to
            self._failed(name, f"{type(error).__name__}: {error}", error)
        else:
            if self._faults.pop(name, None):
                log.info("Host can be read again", {"sensor": name})
        return _Reading(name, time.monotonic() - began, failed=name in self._faults)

    def _count(self, done: asyncio.Future[list[_Reading]]) -> None:
        if not done.cancelled() and not done.exception():
            for name, took_seconds, failed in done.result():
                self._metrics.read(name, took_seconds, failed=failed)

    def _failed(self, name: str, fault: str, error: Exception) -> None:
        is_expected = isinstance(error, OSError | ValueError | LookupError)
        if self._faults.get(name) != fault:  # said once, not every second
            self._faults[name] = fault
            told = {"sensor": name, "err": fault}
            log.error("Unable to read the host, keeping its last values", told, exc_info=None if is_expected else error)
