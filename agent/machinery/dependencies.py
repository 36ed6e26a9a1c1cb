"""What all controllers of a process share."""

from dataclasses import dataclass

from agent.core.metrics import Registry
from agent.machinery.connectivity import Connectivity
from agent.machinery.isolation import UnexpectedErrors
from agent.ports import Clock, Rand


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Time, chance and the instruments of a process."""

    clock: Clock
    rand: Rand
    connectivity: Connectivity
    unexpected: UnexpectedErrors
    metrics: Registry
