"""What the node knows about its own heartbeat: each loop's last success, and which loop is overdue."""

from collections.abc import Iterator, Mapping, Sequence

from agent.core.config import Config
from agent.core.tally import Counter, Family, Gauge, Histogram
from agent.machinery.health import Failure, FailureBeat, LeaseBeat, LoopBeat
from agent.machinery.isolation import LOOP_MOST_SECONDS, UnexpectedErrors
from agent.ports import Clock

_ROUNDS = 3.0  # how many rounds a loop may miss
_SLACK_SECONDS = 20.0  # what a busy machine, and readings that hang, may add to a round of the sensors
_DURATIONS_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_RECONNECT_SECONDS = 120.0  # the watch tries at least every minute: twice that
_QUIET_SECONDS = 2 * LOOP_MOST_SECONDS  # a loop that still fails tells so at least this often
# What runs beside the heartbeat and has nothing to tell but errors that nobody expected.
_OTHERS = ("events", "eviction", "staticpods", "shutdown", "credentials", "certificates", "server", "notify")


class Pulse:
    """The beats of a node's loops. One home for the deadlines: docs/health.md tells them to people."""

    def __init__(self, config: Config, clock: Clock) -> None:
        heartbeat, observe = config.heartbeat, self._observe
        lease_seconds = float(heartbeat.lease_duration_seconds)
        self._durations = Histogram(
            "fake_kubelet_loop_duration_seconds",
            "How long a successful round of a loop took; for the lease, its renewal.",
            ("loop",),
            _DURATIONS_SECONDS,
        )

        def beat(loop: str, deadline_seconds: float) -> LoopBeat:
            return LoopBeat(loop, clock, deadline_seconds=deadline_seconds, observe=observe)

        # The cluster gives the node up when the lease is over, so that is when we say so, too.
        self.lease = LeaseBeat(
            clock,
            deadline_seconds=lease_seconds,
            period_seconds=heartbeat.lease_renew_seconds,
            observe=observe,
        )
        self.status = beat("status", max(lease_seconds, _ROUNDS * heartbeat.status_update_seconds))
        self.sensors = beat("sensors", _ROUNDS * config.eviction.sensor_seconds + _SLACK_SECONDS)
        self.watch = beat("watch", max(lease_seconds, _RECONNECT_SECONDS))
        self.csinode = beat("csinode", max(lease_seconds, _RECONNECT_SECONDS))
        self.pods = beat("pods", max(lease_seconds, _RECONNECT_SECONDS))
        self.pod_workers = beat("pods", max(lease_seconds, _RECONNECT_SECONDS))
        self.others: Mapping[str, LoopBeat] = {
            loop: FailureBeat(
                loop, clock, deadline_seconds=_RECONNECT_SECONDS, quiet_seconds=_QUIET_SECONDS, observe=observe
            )
            for loop in _OTHERS
        }
        self._rhythmic: Sequence[LoopBeat] = (self.lease, self.status, self.sensors)
        settling = (self.watch, self.csinode, self.pods, self.pod_workers)
        self.beats: Sequence[LoopBeat] = (*self._rhythmic, *settling, *self.others.values())
        self.unexpected = UnexpectedErrors(config.node_name, clock)

    @property
    def loops(self) -> Sequence[str]:
        """The names of all loops that beat."""
        return list(dict.fromkeys(beat.loop for beat in self.beats))

    def begin(self) -> None:
        """The loops start now: those with a rhythm have one deadline for their first beat; the others tell failures."""
        for beat in self._rhythmic:
            beat.begin()

    def faults(self) -> Mapping[str, str]:
        """Loop → why it is overdue; empty when all is well."""
        return {beat.loop: fault for beat in self.beats if (fault := beat.fault)}

    def stalls(self) -> Mapping[str, str]:
        """Loop with a rhythm → why it seems stuck; one that fails and tries again is not, nor would a restart help."""
        return {beat.loop: stall for beat in self._rhythmic if (stall := beat.stall)}

    def last_failure(self) -> Failure | None:
        """The last thing that went wrong, healed or not."""
        failures = [beat.failure for beat in self.beats if beat.failure]
        return max(failures, default=None)

    def families(self) -> Iterator[Family]:
        """The same as metrics."""
        ages = Gauge("fake_kubelet_loop_age_seconds", "Seconds since a loop was last well.", ("loop",))
        deadlines = Gauge(
            "fake_kubelet_loop_deadline_seconds", "The age from which a loop turns /healthz red.", ("loop",)
        )
        healthy = Gauge("fake_kubelet_loop_healthy", "Whether a loop is within its deadline.", ("loop",))
        failures = Counter("fake_kubelet_loop_failures_total", "Tries of a loop that failed.", ("loop",))
        missed = Counter("fake_kubelet_lease_renewals_missed_total", "Renewals of the lease that did not come in time.")
        missed.add(amount=self.lease.missed)
        for beat in sorted(self.beats, key=lambda beat: beat.age_seconds):  # of two with one name, the older counts
            ages.set(beat.loop, value=beat.age_seconds)
            deadlines.set(beat.loop, value=beat.deadline_seconds)
            healthy.set(beat.loop, value=float(beat.fault is None))
            failures.add(beat.loop, amount=beat.failures)
        for tally in (self._durations, ages, deadlines, healthy, failures, missed, self.unexpected.total):
            yield tally.family()

    def _observe(self, loop: str, took_seconds: float) -> None:
        self._durations.observe(loop, value=took_seconds)
