"""Requests to the API server, counted as client-go counts them."""

from collections.abc import Iterator

from agent.core.metrics import Counter, Family, Histogram

_ERROR = "<error>"
_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class RequestMetrics:
    """How many requests were sent and how they were answered; all connections of a process share one."""

    def __init__(self) -> None:
        self._requests = Counter(
            "rest_client_requests_total",
            "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
        )
        self._durations = Histogram(
            "rest_client_request_duration_seconds",
            "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
            ("host", "verb"),
            _SECONDS,
        )

    def answered(self, method: str, host: str, status: int | None, took_seconds: float) -> None:
        """A request had this answer, or None."""
        self._requests.add(_ERROR if status is None else str(status), host, method)
        self._durations.observe(host, method, value=took_seconds)

    def families(self) -> Iterator[Family]:
        """The same as metrics."""
        yield self._requests.family()
        yield self._durations.family()
