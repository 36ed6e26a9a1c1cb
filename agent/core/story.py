"""What a container would have logged, if it ran: its life on this node, in a line for each turn."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods.parts import container_statuses
from agent.core.times import parse_time

_FAILED_PULLS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class Line(NamedTuple):
    """One line of a log."""

    at: datetime
    text: str


class LogOptions(NamedTuple):
    """Which lines are wanted, as PodLogOptions say it."""

    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None
    timestamps: bool = False
    previous: bool = False  # those of the container's life before this one


class NoLog(Exception):
    """Why there is no log, in a kubelet's words."""


def container_log(pod: Object, container: str, options: LogOptions) -> bytes:
    """The lines that are wanted, oldest first; NoLog if the container has written none yet."""
    state = _told_state(pod, container, previous=options.previous)
    image = (_status(pod, container) or {}).get("image") or "its image"
    lines = [line for line in _story(state, container, image) if options.since is None or line.at >= options.since]
    if options.tail_lines is not None:
        lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
    text = "".join(f"{_stamp(line.at)} {line.text}\n" if options.timestamps else f"{line.text}\n" for line in lines)
    return text.encode()[: options.limit_bytes]


def _told_state(pod: Object, container: str, *, previous: bool) -> Object:
    """The life whose log is meant. kubelet v1.36: validateContainerLogStatus"""
    where, status = f'container "{container}" in pod "{pod["metadata"]["name"]}"', _status(pod, container)
    if status is None:
        raise NoLog(f"{where} is not available")
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if previous:
        if not _has_identity(last):
            raise NoLog(f"previous terminated {where} not found")
        return last
    if "running" in state or _has_identity(state):
        return state
    if _has_identity(last):
        return last
    if "terminated" in state or "terminated" in last:
        raise NoLog(f"{where} is terminated")
    if "waiting" in state:
        reason = state["waiting"].get("reason", "")
        raise NoLog(f"{where} is waiting to start: {_FAILED_PULLS.get(reason, reason)}")
    raise NoLog(f"{where} is waiting to start - no logs yet")


def _has_identity(state: Object) -> bool:
    """Whether a container ended that has run at all."""
    return bool((state.get("terminated") or {}).get("containerID"))


def _story(state: Object, container: str, image: str) -> Iterator[Line]:
    life = state["running"] if "running" in state else state["terminated"]  # one may be empty
    told = f"fake-kubelet: container {container} of {image} runs in name only, nothing is executed on this node"
    yield Line(_time(life.get("startedAt")), told)
    if ended := state.get("terminated"):
        told = f"fake-kubelet: container {container} ended with exit code {ended['exitCode']}"
        yield Line(_time(ended.get("finishedAt")), f"{told} ({ended.get('reason') or 'no reason'})")


def _status(pod: Object, container: str) -> Object | None:
    told = container_statuses(pod.get("status") or {})
    return next((status for status in told if status["name"] == container), None)


def _time(text: str | None) -> datetime:
    return parse_time(text) if text else datetime.fromtimestamp(0, UTC)


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z"
