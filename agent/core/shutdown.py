"""How a node goes down: what it says, and how long its pods have."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SHUTTING_DOWN = "node is shutting down"

_ANY_POD = 0  # the priority of a pod without a priority class
_CRITICAL_POD = 2_000_000_000  # system-cluster-critical


class GracePeriod(NamedTuple):
    """How long pods from a priority on have to end; those of a lower one have ended before."""

    priority: int
    seconds: int


def grace_periods(
    whole_seconds: float, critical_seconds: float, by_priority: Iterable[GracePeriod] = ()
) -> tuple[GracePeriod, ...]:
    """The periods in their order, lowest priority first; a list by priority replaces the other two settings."""
    if listed := sorted(by_priority):
        return tuple(listed)
    if whole_seconds <= 0:
        return ()
    # kubelet v1.36: nodeshutdown.migrateConfig
    return (
        GracePeriod(_ANY_POD, int(whole_seconds - critical_seconds)),
        GracePeriod(_CRITICAL_POD, int(critical_seconds)),
    )


def requested_seconds(periods: Sequence[GracePeriod]) -> int:
    """How long a shutdown of the machine has to be held back."""
    return sum(period.seconds for period in periods)
