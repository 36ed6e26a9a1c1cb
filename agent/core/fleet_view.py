"""What a fleet shows of itself to people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WAITING, REGISTERING, READY, NOT_READY, UNKNOWN, DELETED = (
    "waiting",
    "registering",
    "Ready",
    "NotReady",
    "Unknown",
    "deleted",
)
STATES = (READY, NOT_READY, UNKNOWN, REGISTERING, WAITING, DELETED)
AGE_LIMITS_SECONDS = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0)
_RATE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """A fleet at one moment."""

    name: str
    seconds: float  # since the start
    states: Mapping[str, int]  # nodes by state
    lease_ages: Sequence[float] = ()  # in seconds, of all nodes that have renewed
    missed: int = 0  # renewals that did not come in time
    latencies: Sequence[float] = ()  # of the last requests, in seconds
    pods: int = 0
    rss_bytes: int = 0

    @property
    def total(self) -> int:
        """How many nodes there are."""
        return sum(self.states.values())

    @property
    def ready(self) -> int:
        """How many are ready."""
        return self.states.get(READY, 0)

    @property
    def renewals_per_second(self) -> float:
        """How many leases were renewed per second lately."""
        return sum(age < _RATE_SECONDS for age in self.lease_ages) / _RATE_SECONDS

    @property
    def oldest_seconds(self) -> float:
        """The age of the lease that was renewed longest ago."""
        return max(self.lease_ages, default=0.0)


def age_histogram(ages: Iterable[float]) -> list[tuple[str, int]]:
    """Return how many leases are how old: `<5s`, `<10s`, and so on."""
    counts = [0] * (len(AGE_LIMITS_SECONDS) + 1)
    for age in ages:
        counts[sum(age >= limit for limit in AGE_LIMITS_SECONDS)] += 1
    labels = [*(f"<{limit:g}s" for limit in AGE_LIMITS_SECONDS), f">={AGE_LIMITS_SECONDS[-1]:g}s"]
    return list(zip(labels, counts, strict=True))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that so many percent of them do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] if ordered else 0.0


def plain_line(view: FleetView) -> str:
    """Return a fleet as one line."""
    states = ", ".join(f"{view.states[state]} {state}" for state in STATES if view.states.get(state))
    latency = f"{1000 * percentile(view.latencies, 50):.0f}/{1000 * percentile(view.latencies, 99):.0f} ms"
    return (
        f"{view.seconds:6.0f}s  {states or 'no nodes'}; {view.renewals_per_second:.0f} renewals/s, oldest lease "
        f"{view.oldest_seconds:.0f}s, {view.missed} missed; API p50/p99 {latency}; {view.pods} pods; "
        f"{view.rss_bytes / 2**20:.0f} MiB"
    )
