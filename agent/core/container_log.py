"""The log of a container that does not run: what its plain command would print, otherwise its start and its end."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from agent.core.model import ContainerState, ContainerStatus, PodObject
from agent.core.pods.accessors import container_statuses, placed_containers
from agent.core.pods.command import CommandPlan, command_plan, has_short_commands
from agent.core.times import parse_time

_SECOND = timedelta(seconds=1)
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


class RunLog(NamedTuple):
    """The log of one run of a container."""

    began_at: datetime
    lines: Sequence[Line]  # oldest first; of a run that goes on, also those that its command will print
    goes_on: bool  # its command runs: there may be more lines

    def until(self, now: datetime) -> Sequence[Line]:
        """Return the lines that were printed by now."""
        return [line for line in self.lines if line.at <= now] if self.goes_on else self.lines


def run_log(pod: PodObject, container: str, *, previous: bool, understands_commands: bool) -> RunLog:
    """Return the log of a container's run, or of the one before it; raise LogUnavailable where there is none."""
    state = _run_state(pod, container, previous=previous)
    return _run_log(pod, container, state, understands_commands=understands_commands)


def same_run_log(pod: PodObject, container: str, began_at: datetime) -> RunLog | None:
    """Return the log of the run of a plain command that began at a time; None if it was two runs ago or earlier."""
    status = _status(pod, container)
    for state in (status.get("state") or {}, status.get("lastState") or {}) if status else ():
        run = state.get("running") or state.get("terminated")
        if run and _time(run.get("startedAt")) == began_at:
            return _run_log(pod, container, state, understands_commands=True)
    return None


def selected(lines: Sequence[Line], options: LogOptions) -> bytes:
    """Return the text of the lines that the options ask for."""
    lines = [line for line in lines if options.since is None or line.at >= options.since]
    if options.tail_lines is not None:
        lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
    text = "".join(f"{_stamp(line.at)} {line.text}\n" if options.timestamps else f"{line.text}\n" for line in lines)
    return text.encode(errors="replace")[: options.limit_bytes]


def _run_log(pod: PodObject, container: str, state: ContainerState, *, understands_commands: bool) -> RunLog:
    run = state["running"] if "running" in state else state["terminated"]  # either may be empty
    began_at = _time(run.get("startedAt"))
    plan = _plan(pod, container) if understands_commands else None
    if plan is None or (plan.run_seconds is None and not plan.output):
        return RunLog(began_at, list(_story(pod, container, state, began_at)), goes_on=False)
    lines: Sequence[Line] = list(_printed(plan, began_at))
    if ended := state.get("terminated"):
        finished_at = _time(ended.get("finishedAt"))
        lines = [line for line in lines if line.at < finished_at + _SECOND]  # which the status rounds down
    return RunLog(began_at, lines, goes_on="running" in state)


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


def _plan(pod: PodObject, container: str) -> CommandPlan | None:
    spec = next((spec for _, spec in placed_containers(pod) if spec["name"] == container), None)
    return command_plan(pod, spec) if spec and has_short_commands(pod) else None


def _printed(plan: CommandPlan, began_at: datetime) -> Iterator[Line]:
    for line in plan.output:
        try:
            yield Line(began_at + timedelta(seconds=line.at_seconds), line.text)
        except OverflowError:
            return


def _story(pod: PodObject, container: str, state: ContainerState, began_at: datetime) -> Iterator[Line]:
    """Yield a line for the start of a container whose command says nothing, and one for its end."""
    status = _status(pod, container)
    image = (status.get("image") if status else "") or "its image"
    text = f"fake-kubelet: container {container} of {image} runs in name only, nothing is executed on this node"
    yield Line(began_at, text)
    if ended := state.get("terminated"):
        text = f"fake-kubelet: container {container} ended with exit code {ended['exitCode']}"
        yield Line(_time(ended.get("finishedAt")), f"{text} ({ended.get('reason') or 'no reason'})")


def _status(pod: PodObject, container: str) -> ContainerStatus | None:
    statuses = container_statuses(pod.get("status") or {})
    return next((status for status in statuses if status["name"] == container), None)


def _time(text: str | None) -> datetime:
    return parse_time(text) if text else datetime.fromtimestamp(0, UTC)


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"
