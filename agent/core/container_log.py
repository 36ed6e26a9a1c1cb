"""The log of a container that does not run: one line for its start, and one for its end."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from agent.core.model import ContainerState, ContainerStatus, PodObject
from agent.core.pods.accessors import container_statuses
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
    """Which lines to return, as in PodLogOptions."""

    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None
    timestamps: bool = False
    previous: bool = False  # the log of the run before this one


class LogUnavailable(Exception):
    """Why there is no log, in kubelet's words."""


def container_log(pod: PodObject, container: str, options: LogOptions) -> bytes:
    """Return the selected lines, oldest first; raise LogUnavailable where the container has no log."""
    state = _run_state(pod, container, previous=options.previous)
    status = _status(pod, container)
    image = (status.get("image") if status else "") or "its image"
    lines = [line for line in _lines(state, container, image) if options.since is None or line.at >= options.since]
    if options.tail_lines is not None:
        lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
    text = "".join(f"{_stamp(line.at)} {line.text}\n" if options.timestamps else f"{line.text}\n" for line in lines)
    return text.encode()[: options.limit_bytes]


def _run_state(pod: PodObject, container: str, *, previous: bool) -> ContainerState:
    """Return the state of the run whose log is asked for. kubelet v1.36: validateContainerLogStatus"""
    where, status = f'container "{container}" in pod "{pod["metadata"]["name"]}"', _status(pod, container)
    if status is None:
        raise LogUnavailable(f"{where} is not available")
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if previous:
        if not _has_container_id(last):
            raise LogUnavailable(f"previous terminated {where} not found")
        return last
    if "running" in state or _has_container_id(state):
        return state
    if _has_container_id(last):
        return last
    if "terminated" in state or "terminated" in last:
        raise LogUnavailable(f"{where} is terminated")
    if "waiting" in state:
        reason = state["waiting"].get("reason", "")
        raise LogUnavailable(f"{where} is waiting to start: {_FAILED_PULLS.get(reason, reason)}")
    raise LogUnavailable(f"{where} is waiting to start - no logs yet")


def _has_container_id(state: ContainerState) -> bool:
    """Return whether a state is the end of a container that has run."""
    terminated = state.get("terminated")
    return bool(terminated and terminated.get("containerID"))


def _lines(state: ContainerState, container: str, image: str) -> Iterator[Line]:
    run = state["running"] if "running" in state else state["terminated"]  # either may be empty
    text = f"fake-kubelet: container {container} of {image} runs in name only, nothing is executed on this node"
    yield Line(_time(run.get("startedAt")), text)
    if ended := state.get("terminated"):
        text = f"fake-kubelet: container {container} ended with exit code {ended['exitCode']}"
        yield Line(_time(ended.get("finishedAt")), f"{text} ({ended.get('reason') or 'no reason'})")


def _status(pod: PodObject, container: str) -> ContainerStatus | None:
    statuses = container_statuses(pod.get("status") or {})
    return next((status for status in statuses if status["name"] == container), None)


def _time(text: str | None) -> datetime:
    return parse_time(text) if text else datetime.fromtimestamp(0, UTC)


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z"
