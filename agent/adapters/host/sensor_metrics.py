"""How the readings of the host went: a sensor that fails or hangs keeps its last value, and is seen here."""

from collections.abc import Iterator

from agent.core.metrics import Counter, Family, Gauge, Histogram

FAILED, TIMEOUT = "failed", "timeout"
_SECONDS = (0.1, 1.0)  # a second is the deadline; more buckets would make every scrape dearer


class SensorMetrics:
    """Durations and errors by sensor; all probes of a host share one."""

    def __init__(self) -> None:
        self._durations = Histogram(
            "fake_kubelet_sensor_duration_seconds", "How long a reading of the host took.", ("sensor",), _SECONDS
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
        """A reading came back, in time or late, with a value or without."""
        self._durations.observe(sensor, value=took_seconds)
        self._hanging.set(sensor, value=0.0)
        if failed:
            self._errors.add(sensor, FAILED)

    def hangs(self, sensor: str) -> None:
        """A reading did not come back in time."""
        self._errors.add(sensor, TIMEOUT)
        self._hanging.set(sensor, value=1.0)

    def families(self) -> Iterator[Family]:
        """The same as metrics."""
        for metric in (self._durations, self._errors, self._hanging):
            yield metric.family()
