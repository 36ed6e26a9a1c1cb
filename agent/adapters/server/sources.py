"""What the endpoints of a node show. Whoever provides it need not import HTTP."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent.core.model import Object, PodObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the endpoints show, as plain callables, so that the server imports nobody behind them."""

    started: datetime
    configz: Object  # {"kubeletconfig": …}
    flagz: Mapping[str, str]  # flag → its value
    log_directory: Path  # what /logs/ shows
    # only CPU and memory? → stats/v1alpha1 Summary without its pods, and an iterator of these
    summary: Callable[[bool], Awaitable[tuple[Object, Iterator[Object]]]]
    metrics: Callable[[], Awaitable[bytes]]
    resource_metrics: Callable[[], Awaitable[bytes]]
    cadvisor_metrics: Callable[[], Awaitable[bytes]]
    probe_metrics: Callable[[], Awaitable[bytes]]
    pods: Callable[[], Iterator[bytes]]  # each as JSON
    pod: Callable[[str, str], PodObject | None]  # namespace, name → the pod
    understands_commands: bool  # plain commands of containers mean something
    faults: Callable[[], Mapping[str, str]]  # loop → why it is late; empty when all are healthy
