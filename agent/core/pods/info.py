"""The few facts about a pod that are read often, so that nobody decodes a whole pod (up to 1.5 MB) for one of them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from sys import intern
from typing import NamedTuple

from agent.core.model import PodObject
from agent.core.pods.accessors import (
    RUNNING,
    container_statuses,
    is_admitted,
    is_critical,
    is_mirror,
    is_terminating,
    placed_containers,
    priority,
    termination_grace_seconds,
)
from agent.core.pods.resources import PodRequest, qos_class, request_of
from agent.core.pods.static import mirror_hash
from agent.core.pods.usage import Resource, Usage, container_usage, says_usage

_MOST_CONTAINERS = 50  # of a pod that seem to use something: each curve takes memory
_NO_RULES: Mapping[Resource, str] = {}


class RunningContainer(NamedTuple):
    """A container that runs, since when, and what it uses; None for nothing."""

    name: str
    started_at: str | None
    image: str = ""
    restarts: int = 0
    usage: Usage | None = None


class PodInfo(NamedTuple):
    """What metrics, admission, preemption, eviction and shutdown read of a pod."""

    namespace: str
    name: str
    uid: str
    phase: str
    priority: int
    qos_class: str
    request: PodRequest
    grace_seconds: int  # terminationGracePeriodSeconds
    is_critical: bool
    is_admitted: bool
    is_terminating: bool  # somebody has deleted it in the API
    mirror_hash: str | None  # the static pod's hash; None for a pod that is no mirror pod
    started_at: str | None
    running: tuple[RunningContainer, ...]
    states: Mapping[str, int]  # running, waiting or terminated → how many of its main containers

    @property
    def full_name(self) -> str:
        """The pod as log lines name it."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_mirror(self) -> bool:
        """Whether the pod shows a static pod."""
        return self.mirror_hash is not None


def pod_info(pod: PodObject, usage_rules: Mapping[Resource, str] = _NO_RULES) -> PodInfo:
    """Read the facts from the whole object."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    states = Counter(state for main in status.get("containerStatuses") or () for state in main.get("state") or ())
    return PodInfo(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        phase=status.get("phase") or "",
        priority=priority(pod),
        qos_class=qos_class(pod),
        request=request_of(pod),
        grace_seconds=termination_grace_seconds(pod),
        is_critical=is_critical(pod),
        is_admitted=is_admitted(pod),
        is_terminating=is_terminating(pod),
        mirror_hash=mirror_hash(pod) if is_mirror(pod) else None,
        started_at=status.get("startTime"),
        running=tuple(_running(pod, usage_rules)),
        states=dict(states),
    )


def _running(pod: PodObject, rules: Mapping[Resource, str]) -> Iterator[RunningContainer]:
    placed = islice(placed_containers(pod), _MOST_CONTAINERS if says_usage(pod, rules) else 0)
    specs = {spec["name"]: spec for _, spec in placed}
    for status in container_statuses(pod.get("status") or {}):
        if running := (status.get("state") or {}).get("running"):
            spec = specs.get(status["name"])
            yield RunningContainer(
                name=intern(status["name"]),
                started_at=running.get("startedAt"),
                image=intern(str(status.get("image") or "")),
                restarts=int(status.get("restartCount") or 0),
                usage=container_usage(pod, spec, rules) if spec else None,
            )


class PodCounts:
    """How many pods run, and how many main containers are in which state."""

    def __init__(self) -> None:
        self.running_pods = 0
        self.containers: Counter[str] = Counter()  # by state: running, waiting or terminated

    def add(self, pod: PodInfo) -> None:
        """Count a pod."""
        self.running_pods += pod.phase == RUNNING
        self.containers.update(pod.states)

    def subtract(self, pod: PodInfo) -> None:
        """Do not count a pod any more, in the state in which it was added."""
        self.running_pods -= pod.phase == RUNNING
        self.containers.subtract(pod.states)
