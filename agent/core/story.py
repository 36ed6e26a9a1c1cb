"""What a container would have logged, if it ran: its life on this node, in a line for each turn."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods.parts import container_statuses


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


def waiting_reason(pod: Object, container: str) -> str:
    """Why a container has not been started; empty if it has."""
    state = (_status(pod, container) or {}).get("state") or {}
    if "running" in state or "terminated" in state:
        return ""
    return (state.get("waiting") or {}).get("reason") or "ContainerCreating"


def container_log(pod: Object, container: str, options: LogOptions) -> bytes:
    """The lines that are wanted, oldest first."""
    lines = [line for line in _story(pod, container) if options.since is None or line.at >= options.since]
    if options.tail_lines is not None:
        lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
    text = "".join(f"{_stamp(line.at)} {line.text}\n" if options.timestamps else f"{line.text}\n" for line in lines)
    return text.encode()[: options.limit_bytes]


def _story(pod: Object, container: str) -> Iterator[Line]:
    status = _status(pod, container) or {}
    image = status.get("image") or "its image"
    for state in _states(status):
        if running := state.get("running") or state.get("terminated"):
            told = f"fake-kubelet: container {container} of {image} runs in name only, nothing is executed on this node"
            yield Line(_time(running["startedAt"]), told)
        if ended := state.get("terminated"):
            told = f"fake-kubelet: container {container} ended with exit code {ended['exitCode']}"
            yield Line(_time(ended["finishedAt"]), f"{told} ({ended.get('reason') or 'no reason'})")


def _states(status: Object) -> Sequence[Object]:
    return [status.get(name) or {} for name in ("lastState", "state")]


def _status(pod: Object, container: str) -> Object | None:
    told = container_statuses(pod.get("status") or {})
    return next((status for status in told if status["name"] == container), None)


def _time(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, UTC)


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z"
