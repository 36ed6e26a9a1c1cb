"""How many requests came and how the health checks ended, in a kubelet's numbers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent.core.metrics import Counter, Family, Gauge, Histogram
from agent.ports import Clock

_LABELS = ("method", "path", "server_type", "long_running")
_METHODS = frozenset({"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "CONNECT"})
# kubelet v1.36: addMetricsBucketMatcher
_METRICS = {"metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource"}
_CONTAINERS = {"run", "exec", "attach", "portForward", "containerLogs", "checkpoint"}
_NODE = {"healthz", "pods", "runningpods", "stats", "configz", "flagz", "statusz", "logs", "debug"}
_PATHS = frozenset(_METRICS | _CONTAINERS | _NODE)
_LONG_RUNNING = frozenset({"exec", "attach", "debug"})  # and portforward, which no path of a kubelet is called


class ServerMetrics:
    """What all servers of a node count together; whoever renders /metrics takes `families`."""

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
        """What /metrics tells."""
        return self._total.family(), self._inflight.family(), self._durations.family()

    def health(self) -> Sequence[Family]:
        """What /metrics/slis tells."""
        return self._health.family(), self._health_total.family()

    def observe_health(self, check: str, is_well: bool) -> None:
        """Count a health check."""
        self._health.set(check, "healthz", value=float(is_well))
        self._health_total.add(check, "success" if is_well else "error", "healthz")

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
