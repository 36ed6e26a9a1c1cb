"""What the endpoints of a node show. Whoever provides it need not import HTTP."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from agent.core.model import Object, PodObject


class UsageSources(Protocol):
    """What of one machine is in use, in a kubelet's forms."""

    async def summary(self, only_cpu_and_memory: bool) -> tuple[Object, Iterator[Object]]:
        """Return a stats/v1alpha1 Summary without its pods, and an iterator of these."""

    async def resource(self) -> bytes:
        """Return what metrics-server reads."""

    async def cadvisor(self) -> bytes:
        """Return the metrics of cAdvisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the endpoints show, as plain callables, so that the server imports nobody behind them."""

    started: datetime
    configz: Object  # {"kubeletconfig": …}
    flagz: Mapping[str, str]  # flag → its value
    log_directory: Path  # what /logs/ shows
    usage: UsageSources | None  # None for several nodes together
    metrics: Callable[[], Awaitable[bytes]]
    probe_metrics: Callable[[], Awaitable[bytes]]
    pods: Callable[[], Iterator[bytes]]  # each as JSON
    pod: Callable[[str, str], PodObject | None]  # namespace, name → the pod
    understands_commands: bool  # plain commands of containers mean something
    faults: Callable[[], Mapping[str, str]]  # loop → why it is late; empty when all are healthy
