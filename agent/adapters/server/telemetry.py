"""What the servers report about requests: the kubelet's metrics, and log lines that no caller can flood."""

import logging
import traceback
from collections import Counter as Counts
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agent.core.metrics import Counter, Family, Gauge, Histogram
from agent.klog import quoted
from agent.ports import Clock

_LABELS = ("method", "path", "server_type", "long_running")
_METHODS = frozenset({"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"})
# kubelet v1.36: addMetricsBucketMatcher
_METRICS = {"metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource"}
_CONTAINERS = {"run", "exec", "attach", "portForward", "containerLogs", "checkpoint"}
_NODE = {"healthz", "pods", "runningpods", "stats", "configz", "flagz", "statusz", "logs", "debug"}
_PATHS = frozenset(_METRICS | _CONTAINERS | _NODE)
_LONG_RUNNING = frozenset({"exec", "attach", "debug"})  # and portforward, which no path of a kubelet is called

_LOG_PERIOD_SECONDS = 60.0
_MAX_FIELD_CHARACTERS = 256


class ServerMetrics:
    """What all servers of a node count together; /metrics shows `families`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._total = Counter(
            "kubelet_http_requests_total",
            "[ALPHA] Number of the http requests received since the server started",
            _LABELS,
        )
        self._inflight = Gauge(
            "kubelet_http_inflight_requests", "[ALPHA] Number of the inflight http requests", _LABELS
        )
        self._durations = Histogram(
            "kubelet_http_requests_duration_seconds", "[ALPHA] Duration in seconds to serve http requests", _LABELS
        )
        self._health = Gauge(
            "kubernetes_healthcheck",
            "[STABLE] This metric records the result of a single healthcheck.",
            ("name", "type"),
        )
        self._health_total = Counter(
            "kubernetes_healthchecks_total",
            "[STABLE] This metric records the results of all healthcheck.",
            ("name", "status", "type"),
        )

    def families(self) -> Sequence[Family]:
        """Return the metrics of requests, for /metrics."""
        return self._total.family(), self._inflight.family(), self._durations.family()

    def health(self) -> Sequence[Family]:
        """Return the metrics of health checks, for /metrics/slis."""
        return self._health.family(), self._health_total.family()

    def observe_health(self, check: str, is_healthy: bool) -> None:
        """Count a health check."""
        self._health.set(check, "healthz", value=float(is_healthy))
        self._health_total.add(check, "success" if is_healthy else "error", "healthz")

    @contextmanager
    def counted(self, method: str, path: str, server_type: str) -> Iterator[None]:
        """Count a request from its beginning to its end."""
        bucket = _bucket(path)
        labels = (
            method if method in _METHODS else "other",
            bucket,
            server_type,
            "true" if bucket in _LONG_RUNNING else "false",
        )
        began = self._clock.monotonic()
        self._total.add(*labels)
        self._inflight.set(*labels, value=self._inflight.value(*labels) + 1)
        try:
            yield
        finally:
            self._inflight.set(*labels, value=self._inflight.value(*labels) - 1)
            self._durations.observe(*labels, value=self._clock.monotonic() - began)


def _bucket(path: str) -> str:
    first, second = [*path.removeprefix("/").split("/", 2), ""][:2]
    root = f"{first}/{second}" if first == "metrics" and path.count("/") > 1 else first
    return root if root in _PATHS else "other"


class RateLimitedLog:
    """Logs each phrase, and each unexpected error by the place that raised it, at most once a minute.

    The next line says how many were suppressed. Places are lines of code and phrases are fixed: there are few of both.
    """

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._silent_until: dict[str, float] = {}
        self._suppressed = Counts[str]()

    def log(self, level: int, phrase: str, fields: Mapping[str, Any]) -> None:
        """Log a phrase and its fields; strings are escaped and cut."""
        self._write(f"{level} {phrase}", level, phrase, fields)

    def unexpected(self, phrase: str, fields: Mapping[str, Any], error: Exception) -> None:
        """Log an error that nobody expected, with its stack."""
        raised_in = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)[-1:]]
        self._write(f"{type(error).__name__} {raised_in}", logging.ERROR, phrase, fields, error)

    def _write(
        self, key: str, level: int, phrase: str, fields: Mapping[str, Any], error: Exception | None = None
    ) -> None:
        if not self._log.isEnabledFor(level):
            return
        now = self._clock.monotonic()
        if now < self._silent_until.get(key, now):
            self._suppressed[key] += 1
            return
        self._silent_until[key] = now + _LOG_PERIOD_SECONDS
        shown = {name: _printable(value) for name, value in fields.items()}
        if suppressed := self._suppressed.pop(key, 0):
            shown["suppressed"] = suppressed
        self._log.log(level, phrase, shown, exc_info=error, stacklevel=3)


def _printable(value: Any) -> Any:
    """Return what a log may show of a request: one line, without control characters."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = str(value)
    return (text if text.isprintable() else quoted(text)[1:-1])[:_MAX_FIELD_CHARACTERS]
