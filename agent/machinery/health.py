"""How the loops of a process are doing: when each last got through, and what went wrong since."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.core.metrics import Counter, Family, Gauge, Histogram, Registry
from agent.core.node_view import Renewal
from agent.core.times import format_seconds
from agent.ports import Clock

OK, LATE, FAILED = "ok", "late", "failed"
_HISTORY_SECONDS = 600
_STUCK_SECONDS = 60.0  # what a loop may keep quiet beyond its deadline: a request, and the pause before the next
_LATE_AFTER = 1.5  # periods: a renewal is late when the next one is nearer than the one that was due
_DURATIONS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LONGEST_PAUSE_SECONDS = 30.0  # a whole loop that failed is not left alone for longer
_QUIET_SECONDS = 2 * LONGEST_PAUSE_SECONDS  # a loop that still fails reports so at least this often
RECONNECT_SECONDS = 120.0  # a watch tries at least every minute: twice that


class Failure(NamedTuple):
    """What went wrong in a loop, and when on the monotonic clock."""

    at_seconds: float
    loop: str
    reason: str


class LoopHealth:
    """Remembers what a loop reports about its rounds, and knows when it is overdue."""

    __slots__ = (
        "_clock",
        "_durations",
        "_has_begun",
        "_heard_at",
        "_well_at",
        "deadline_seconds",
        "failure",
        "failures",
        "is_settled",
        "loop",
        "node_name",
    )

    def __init__(
        self, loop: str, clock: Clock, *, deadline_seconds: float, durations: Histogram, node_name: str = ""
    ) -> None:
        self.loop = loop
        self.node_name = node_name
        self.deadline_seconds = deadline_seconds
        self.failures = 0
        self.failure: Failure | None = None
        self.is_settled = True  # before the start there is nothing to do
        self._has_begun = False
        self._clock = clock
        self._durations = durations
        self._well_at = clock.monotonic()
        self._heard_at = clock.monotonic()

    def begin(self) -> None:
        """Expect rounds from now on, the first one within one deadline."""
        self._has_begun = True
        self.is_settled = False
        self._well_at = self._heard_at = self._clock.monotonic()

    def ok(self, took_seconds: float) -> None:
        """A round succeeded; the next has to within the deadline."""
        self.is_settled = False
        self._well_at = self._heard_at = self._clock.monotonic()
        self._durations.observe(self.loop, value=took_seconds)

    def settled(self) -> None:
        """Count the loop as well until a failure is reported."""
        self.is_settled = True
        self._well_at = self._heard_at = self._clock.monotonic()

    def failed(self, reason: object) -> None:
        """A try failed; what was settled has one deadline from now to recover."""
        now = self._clock.monotonic()
        if self.is_settled:
            self.is_settled, self._well_at = False, now
        self._heard_at = now
        self.failures += 1
        self.failure = Failure(now, self.loop, str(reason))

    @property
    def age_seconds(self) -> float:
        """Seconds since all was well; 0 while it is by itself."""
        return 0.0 if self.is_settled else self._clock.monotonic() - self._well_at

    @property
    def fault(self) -> str | None:
        """Why the loop is overdue; None while it is not."""
        if self.age_seconds <= self.deadline_seconds:
            return None
        text = f"no success for {format_seconds(round(self.age_seconds))}"
        is_recent = self.failure and self.failure.at_seconds >= self._well_at
        return f"{text}: {self.failure.reason}" if self.failure and is_recent else text

    @property
    def stall(self) -> str | None:
        """Why a loop with a rhythm seems stuck: it reports neither success nor failure; None while it moves."""
        silence_seconds = self._clock.monotonic() - self._heard_at
        if not self._has_begun or self.is_settled or silence_seconds <= self.deadline_seconds + _STUCK_SECONDS:
            return None
        return f"nothing heard for {format_seconds(round(silence_seconds))}"


class FailureHealth(LoopHealth):
    """The health of a loop that reports nothing but failures: it is well again after a while without one."""

    __slots__ = ()

    def failed(self, reason: object) -> None:
        """A try failed; the first one after a quiet while has one deadline from now to recover."""
        self.is_settled = self.is_settled or self._is_quiet
        super().failed(reason)

    @property
    def age_seconds(self) -> float:
        """Seconds since it began to fail; 0 while it does not."""
        return 0.0 if self._is_quiet else super().age_seconds

    @property
    def _is_quiet(self) -> bool:
        return self._clock.monotonic() - self._heard_at > _QUIET_SECONDS


class LeaseHealth(LoopHealth):
    """The heartbeat that the cluster sees, with its last ten minutes and the renewals that were missed."""

    __slots__ = ("_history", "_keeps_history", "_missed_before", "_renewed_at", "period_seconds")

    def __init__(
        self,
        clock: Clock,
        *,
        deadline_seconds: float,
        period_seconds: float,
        durations: Histogram,
        node_name: str = "",
        keeps_history: bool = True,
    ) -> None:
        super().__init__("lease", clock, deadline_seconds=deadline_seconds, durations=durations, node_name=node_name)
        self._keeps_history = keeps_history
        self.period_seconds = period_seconds
        self._renewed_at: float | None = None
        self._missed_before = 0
        self._history: list[tuple[float, str]] = []

    @property
    def renewal_age_seconds(self) -> float | None:
        """Seconds since the lease was last renewed; None before the first time."""
        return None if self._renewed_at is None else self._clock.monotonic() - self._renewed_at

    @property
    def missed(self) -> int:
        """How many renewals did not come in their time."""
        return self._missed_before + self._missed_now

    @property
    def _missed_now(self) -> int:
        return max(0, int(self.age_seconds / self.period_seconds - (_LATE_AFTER - 1)))

    def ok(self, took_seconds: float) -> None:
        """The lease was renewed."""
        missed = self._missed_now
        self._missed_before += missed
        self._renewed_at = self._clock.monotonic()
        super().ok(took_seconds)
        self._remember(LATE if missed else OK)

    def settled(self) -> None:
        """There is no lease to renew."""
        self._missed_before += self._missed_now
        super().settled()

    def failed(self, reason: object) -> None:
        """The lease could not be renewed."""
        super().failed(reason)
        self._remember(FAILED)

    def history(self) -> Sequence[Renewal]:
        """The heartbeats of the last ten minutes, oldest first; within one second, the last."""
        now = self._clock.monotonic()
        return [Renewal(now - at, verdict) for at, verdict in self._history if now - at <= _HISTORY_SECONDS]

    def _remember(self, verdict: str) -> None:
        if not self._keeps_history:
            return
        now = self._clock.monotonic()
        if self._history and int(self._history[-1][0]) == int(now):
            self._history.pop()
        self._history.append((now, verdict))
        if len(self._history) > _HISTORY_SECONDS or now - self._history[0][0] > _HISTORY_SECONDS:
            del self._history[0]


class NodeDetails(NamedTuple):
    """What is kept and shown of each node of a process."""

    metrics: bool = False  # the metrics have a node label; else, of one loop, the worst node counts
    history: bool = True  # ten minutes of renewals: 5 KiB


class HealthRegistry:
    """The health of all loops of a process. docs/health.md lists the deadlines for people."""

    def __init__(self, clock: Clock, metrics: Registry, details: NodeDetails) -> None:
        self._clock = clock
        self._keeps_history = details.history
        self._by_node = details.metrics
        self._durations = metrics.register(
            Histogram(
                "fake_kubelet_loop_duration_seconds",
                "How long a successful round of a loop took; for the lease, its renewal.",
                ("loop",),
                _DURATIONS_SECONDS,
            )
        )
        self._loops: list[LoopHealth] = []
        self._failures_only: dict[str, FailureHealth] = {}
        metrics.collect(self._families)

    def loop(self, name: str, *, deadline_seconds: float, node_name: str = "") -> LoopHealth:
        """Return the health of a new loop."""
        health = LoopHealth(
            name, self._clock, deadline_seconds=deadline_seconds, durations=self._durations, node_name=node_name
        )
        self._loops.append(health)
        return health

    def lease(self, *, deadline_seconds: float, period_seconds: float, node_name: str = "") -> LeaseHealth:
        """Return the health of a new node's heartbeat."""
        health = LeaseHealth(
            self._clock,
            deadline_seconds=deadline_seconds,
            period_seconds=period_seconds,
            durations=self._durations,
            node_name=node_name,
            keeps_history=self._keeps_history,
        )
        self._loops.append(health)
        return health

    def failures_only(self, name: str) -> FailureHealth:
        """Return the health of a loop that has nothing to report but errors that nobody expected."""
        if name not in self._failures_only:
            self._failures_only[name] = FailureHealth(
                name, self._clock, deadline_seconds=RECONNECT_SECONDS, durations=self._durations
            )
            self._loops.append(self._failures_only[name])
        return self._failures_only[name]

    def missed_renewals(self) -> int:
        """How many renewals of leases did not come in their time."""
        return sum(health.missed for health in self._loops if isinstance(health, LeaseHealth))

    def remove(self, node_name: str) -> None:
        """Forget the loops of a node that is not hosted any more."""
        self._loops = [health for health in self._loops if health.node_name != node_name]

    def faults(self) -> Mapping[str, str]:
        """Loop → why it is overdue; empty when all is well. Of the nodes of a process, the first one is named."""
        return self._first_of_each(lambda health: health.fault)

    def stalls(self) -> Mapping[str, str]:
        """Loop → why it seems stuck; one that fails and tries again is not, nor would a restart help."""
        return self._first_of_each(lambda health: health.stall)

    def last_failure(self) -> Failure | None:
        """Return the last thing that went wrong, healed or not."""
        return max((health.failure for health in self._loops if health.failure), default=None)

    def _first_of_each(self, complaint: Callable[[LoopHealth], str | None]) -> Mapping[str, str]:
        nodes = len({health.node_name for health in self._loops if health.node_name})
        complaints: dict[str, str] = {}
        for health in self._loops:
            if health.loop not in complaints and (text := complaint(health)):
                complaints[health.loop] = f"{health.node_name}: {text}" if nodes > 1 and health.node_name else text
        return complaints

    def _families(self) -> Iterator[Family]:
        node = ("node",) if self._by_node else ()
        labels = ("loop", *node)
        ages = Gauge("fake_kubelet_loop_age_seconds", "Seconds since a loop was last well.", labels)
        deadlines = Gauge("fake_kubelet_loop_deadline_seconds", "The age from which a loop turns /healthz red.", labels)
        healthy = Gauge("fake_kubelet_loop_healthy", "Whether a loop is within its deadline.", labels)
        failures = Counter("fake_kubelet_loop_failures_total", "Tries of a loop that failed.", labels)
        missed = Counter(
            "fake_kubelet_lease_renewals_missed_total", "Renewals of the lease that did not come in time.", node
        )
        for health in sorted(self._loops, key=lambda health: health.age_seconds):  # of one name, the oldest counts
            of_node = (health.node_name,) if self._by_node else ()
            ages.set(health.loop, *of_node, value=health.age_seconds)
            deadlines.set(health.loop, *of_node, value=health.deadline_seconds)
            healthy.set(health.loop, *of_node, value=float(health.fault is None))
            failures.add(health.loop, *of_node, amount=health.failures)
            if isinstance(health, LeaseHealth):
                missed.add(*of_node, amount=health.missed)
        for metric in (ages, deadlines, healthy, failures, missed):
            yield metric.family()
