"""Metrics of a process: counters, gauges, histograms and their registry."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, NamedTuple, TypeVar

SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The default buckets of a Kubernetes histogram of durations."""


class Sample(NamedTuple):
    """One number: what its name adds to the family's, its labels, its value, and when it was true if not now."""

    suffix: str
    labels: dict[str, str] | str  # a str is what exposition.format_labels has made of them
    value: float
    timestamp_seconds: float | None = None


class Family(NamedTuple):
    """All numbers of one name at one moment."""

    name: str
    help: str
    kind: str  # counter, gauge or histogram
    samples: list[Sample]


class _Metric:
    """The base of all metrics: a name, a help text, and the names of the labels."""

    def __init__(self, name: str, help: str, labels: tuple[str, ...] = ()) -> None:  # noqa: A002 - Prometheus' word
        self.name, self.help, self.labels = name, help, labels

    def _checked(self, values: tuple[str, ...]) -> tuple[str, ...]:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {values}")
        return values

    def _named(self, values: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self.labels, values, strict=True))


class _Numbers(_Metric):
    """A metric that is one number for each set of label values."""

    kind: ClassVar[str]

    def __init__(self, name: str, help: str, labels: tuple[str, ...] = ()) -> None:  # noqa: A002
        super().__init__(name, help, labels)
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def value(self, *values: str) -> float:
        """Return the current number; 0 where none was set."""
        return self._values.get(self._checked(values), 0.0)

    def family(self) -> Family:
        """Return the current numbers."""
        samples = [Sample("", self._named(values), number) for values, number in self._values.items()]
        return Family(self.name, self.help, self.kind, samples)


class Counter(_Numbers):
    """A number that only increases."""

    kind = "counter"

    def add(self, *values: str, amount: float = 1.0) -> None:
        """Increase the number."""
        key = self._checked(values)
        self._values[key] = self._values.get(key, 0.0) + amount


class Gauge(_Numbers):
    """A number that may rise and fall."""

    kind = "gauge"

    def set(self, *values: str, value: float) -> None:
        """Set the number."""
        self._values[self._checked(values)] = value


class _Spread:
    """How often a value fell into each bucket, and the sum of all values."""

    __slots__ = ("counts", "sum")

    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        self.sum = 0.0


class Histogram(_Metric):
    """Counts observed values by buckets."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002
        labels: tuple[str, ...] = (),
        buckets: tuple[float, ...] = SECONDS_BUCKETS,
    ) -> None:
        super().__init__(name, help, labels)
        self._bounds = buckets
        self._spreads: dict[tuple[str, ...], _Spread] = {} if labels else {(): _Spread(len(buckets) + 1)}

    def observe(self, *values: str, value: float) -> None:
        """Count a value in its bucket."""
        key = self._checked(values)
        spread = self._spreads.get(key)
        if spread is None:
            spread = self._spreads[key] = _Spread(len(self._bounds) + 1)
        spread.counts[bisect_left(self._bounds, value)] += 1
        spread.sum += value

    def family(self) -> Family:
        """Return the current buckets, each with those below it."""
        return Family(self.name, self.help, self.kind, list(self._samples()))

    def _samples(self) -> Iterator[Sample]:
        bounds = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        for values, spread in self._spreads.items():
            labels, total = self._named(values), 0
            for bound, count in zip(bounds, spread.counts, strict=True):
                total += count
                yield Sample("_bucket", {**labels, "le": bound}, total)
            yield Sample("_sum", labels, spread.sum)
            yield Sample("_count", labels, total)


Metric = Counter | Gauge | Histogram
T = TypeVar("T", Counter, Gauge, Histogram)


class Registry:
    """The metrics of a process: one for each name, which all nodes share."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._collectors: list[Callable[[], Iterable[Family]]] = []

    def register(self, metric: T) -> T:
        """Return the metric of this name: this one, unless there is one already."""
        registered = self._metrics.setdefault(metric.name, metric)
        if type(registered) is not type(metric) or registered.labels != metric.labels:
            raise ValueError(f"{metric.name} is registered already, and not as this")
        return registered

    def collect(self, collector: Callable[[], Iterable[Family]]) -> None:
        """Call this for further metrics with each call of `families`."""
        self._collectors.append(collector)

    def families(self) -> Iterator[Family]:
        """Yield all metrics with their current values."""
        for metric in self._metrics.values():
            yield metric.family()
        for collector in self._collectors:
            yield from collector()
