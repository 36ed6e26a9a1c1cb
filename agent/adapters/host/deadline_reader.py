"""Sensors of the host that may fail or hang: each costs its own values only, and never more than a deadline."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from agent.core.metrics import Counter, Family, Gauge, Histogram

log = logging.getLogger(__name__)

T = TypeVar("T")
Sensors = Mapping[str, Callable[[T], T]]
"""Functions by the name of a sensor: each takes the last value, and returns it with the sensor's fields read anew."""

_DEADLINE_SECONDS = 1.0
_FAILED, _TIMEOUT = "failed", "timeout"
_BUCKETS_SECONDS = (0.1, 1.0)  # a second is the deadline; more buckets would make every scrape dearer


class SensorMetrics:
    """Durations and errors by sensor; all readers of a host share one."""

    def __init__(self) -> None:
        self._durations = Histogram(
            "fake_kubelet_sensor_duration_seconds",
            "How long a reading of the host took.",
            ("sensor",),
            _BUCKETS_SECONDS,
        )
        self._errors = Counter(
            "fake_kubelet_sensor_errors_total",
            "Readings of the host that failed, or did not come back in time.",
            ("sensor", "reason"),
        )
        self._hanging = Gauge(
            "fake_kubelet_sensor_hanging", "Whether a reading of the host has not come back.", ("sensor",)
        )

    def read(self, sensor: str, took_seconds: float, *, failed: bool) -> None:
        """Count a reading that returned, in time or late, with a value or without."""
        self._durations.observe(sensor, value=took_seconds)
        self._hanging.set(sensor, value=0.0)
        if failed:
            self._errors.add(sensor, _FAILED)

    def hangs(self, sensor: str) -> None:
        """Count a reading that did not return in time."""
        self._errors.add(sensor, _TIMEOUT)
        self._hanging.set(sensor, value=1.0)

    def families(self) -> Iterator[Family]:
        """The same as metrics."""
        for metric in (self._durations, self._errors, self._hanging):
            yield metric.family()


class _Reading(NamedTuple):
    """How one reading of a sensor went."""

    metrics: SensorMetrics
    sensor: str
    took_seconds: float
    failed: bool


class DeadlineReader(Generic[T]):
    """Reads sensors together in one thread; the last value of each stays until a reading of it succeeds."""

    def __init__(
        self,
        initial: T,
        sensors: Sensors[T],
        *,
        deadline_seconds: float = _DEADLINE_SECONDS,
        first_deadline_seconds: float | None = None,
        metrics: SensorMetrics | None = None,
    ) -> None:
        self.value = initial
        self._sensors = sensors
        self._deadline_seconds = deadline_seconds
        self._first_deadline_seconds = first_deadline_seconds or deadline_seconds  # there is no last value to keep yet
        self._metrics = metrics or SensorMetrics()
        self.hangs = False
        """Whether a reading has not come back."""
        self.has_value = False
        self._current_sensor = ""  # the one that the thread reads at the moment
        self._errors: dict[str, str] = {}

    @property
    def deadline_seconds(self) -> float:
        """How long a reading may take."""
        return self._deadline_seconds if self.has_value else self._first_deadline_seconds

    async def read(self) -> T:
        """Return the value, read now if the deadline allows it; a reading that hangs is not started again."""
        await read_together(self)
        return self.value

    def read_all(self) -> list[_Reading]:
        """Read each sensor; for the thread."""
        return [self._read(name, sensor) for name, sensor in self._sensors.items()]

    def report_hanging(self, seconds: float) -> None:
        """Report that the sensor that the thread reads has not come back."""
        log.error("Host does not answer, keeping its last values", {"sensor": self._current_sensor, "seconds": seconds})
        self._metrics.hangs(self._current_sensor)

    def _read(self, name: str, sensor: Callable[[T], T]) -> _Reading:
        self._current_sensor, began = name, time.monotonic()
        try:
            self.value = sensor(self.value)
        except Exception as error:  # psutil's errors, and whatever else odd text in /proc may lead to
            self._failed(name, f"{type(error).__name__}: {error}", error)
        else:
            self.has_value = True
            if self._errors.pop(name, None):
                log.info("Host can be read again", {"sensor": name})
        return _Reading(self._metrics, name, time.monotonic() - began, failed=name in self._errors)

    def _failed(self, name: str, message: str, error: Exception) -> None:
        is_expected = isinstance(error, OSError | ValueError | LookupError)
        if self._errors.get(name) != message:  # logged once, not every second
            self._errors[name] = message
            fields = {"sensor": name, "err": message}
            exc_info = None if is_expected else error
            log.error("Unable to read the host, keeping its last values", fields, exc_info=exc_info)


_Waiting = deque[DeadlineReader[Any]]


async def read_together(*readers: DeadlineReader[Any]) -> None:
    """Read those that do not hang, in turn and in one thread: to enter a thread costs more than most readings.

    After the deadline, those behind the one that does not come back keep their values until the next time.
    """
    started = [reader for reader in readers if not reader.hangs]
    if not started:
        return
    for reader in started:
        reader.hangs = True
    waiting, deadline_seconds = deque(started), max(reader.deadline_seconds for reader in started)
    job = asyncio.get_running_loop().run_in_executor(None, _read_in_turn, waiting)
    job.add_done_callback(_count)  # in the event loop, however late it comes
    done, _ = await asyncio.wait({job}, timeout=deadline_seconds)  # the thread goes on, whoever is cancelled
    if done:
        job.result()  # nothing, unless no thread can be started
        return
    while reader := _next(waiting):  # type: ignore[assignment]  # not begun
        reader.hangs = False
    hanging = [reader for reader in started if reader.hangs]
    if not hanging:
        job.cancel()  # all threads are busy
    for reader in hanging or started[:1]:
        reader.report_hanging(deadline_seconds)


def _read_in_turn(waiting: _Waiting) -> list[_Reading]:
    readings: list[_Reading] = []
    while reader := _next(waiting):
        readings.extend(reader.read_all())
        reader.hangs = False
    return readings


def _next(waiting: _Waiting) -> DeadlineReader[Any] | None:
    """Take the next reader; the thread and the event loop may want it at the same moment."""
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _count(done: asyncio.Future[list[_Reading]]) -> None:
    if not done.cancelled() and not done.exception():
        for reading in done.result():
            reading.metrics.read(reading.sensor, reading.took_seconds, failed=reading.failed)
