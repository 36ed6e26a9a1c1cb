"""The lifecycle of a pod: its next status, computed from the status in the API.

No other state is kept, so another process continues where this one has stopped.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal, NamedTuple

from agent.core.model import Container, ContainerStatus, PodObject, PodStatus
from agent.core.pods import container
from agent.core.pods.accessors import (
    EPHEMERAL,
    FAILED,
    INIT,
    MAIN,
    PENDING,
    SUCCEEDED,
    clamp_seconds,
    container_statuses,
    containers,
    ephemeral_containers,
    full_name,
    init_containers,
    is_admitted,
    is_sidecar,
    is_terminal,
    placed_containers,
)
from agent.core.pods.command import command_plan, has_short_commands
from agent.core.pods.status import (
    PodContext,
    has_run_any,
    is_initialized,
    is_waited_for,
    network,
    phase,
    pod_status,
    with_disruption,
)
from agent.core.pods.termination import RunPlan, Termination, run_plan, termination


class NextStatus(NamedTuple):
    """The status of a pod from now on, and when it changes by itself; None means never."""

    status: PodStatus
    next_at: datetime | None


def next_status(pod: PodObject, context: PodContext) -> NextStatus:
    """Return the next status of an admitted pod and when it changes by itself."""
    if is_terminal(pod):
        return NextStatus(pod["status"], None)
    return _Lifecycle(pod, context).next_status()


@dataclass
class _Lifecycle:
    """One computation of the next status; `statuses` and `due` are its working state."""

    pod: PodObject
    context: PodContext
    statuses: dict[str, ContainerStatus] = field(default_factory=dict)  # by container name
    due: list[datetime] = field(default_factory=list)  # when the status changes by itself

    def next_status(self) -> NextStatus:
        self.statuses = self._current()
        end = termination(self.pod, self.context.kill_request)
        if end and self._is_due(end.at):
            return NextStatus(self._ended(end), None)
        has_sandbox = self._has_sandbox()
        if has_sandbox and not (end and end.begins_at <= self.context.now):
            self._advance()
        self._apply_probes()
        now_phase = phase(self.pod, self.statuses, is_over=False)
        if now_phase in {SUCCEEDED, FAILED}:
            # As kubelet: no final phase is reported while a container runs, be it an ephemeral one or a sidecar.
            self._end(spec for _, spec in placed_containers(self.pod))
            self._apply_probes()
            return NextStatus(self._status(now_phase, has_sandbox=False), None)
        return NextStatus(self._status(now_phase, has_sandbox=has_sandbox), min(self.due, default=None))

    def _current(self) -> dict[str, ContainerStatus]:
        """Return the status of each container as the API has it; a container without one waits."""
        reported = {status["name"]: status for status in container_statuses(self.pod.get("status", {}))}
        reason = "PodInitializing" if init_containers(self.pod) else "ContainerCreating"
        statuses = {}
        for _, spec in placed_containers(self.pod):
            status = container.waiting(spec, reason) | reported.get(spec["name"], {})
            status = container.with_start(status, self.context.now)
            statuses[spec["name"]] = container.with_resources(status, spec) if container.started_at(status) else status
        return statuses

    def _has_sandbox(self) -> bool:
        """Return whether containers can start: not with the first status, and not without a pod IP."""
        if not is_admitted(self.pod):
            self.due.append(self.context.now)
            return False
        return self.context.pod_ips is not None or any(map(container.has_run, self.statuses.values()))

    def _advance(self) -> None:
        """Move every container forward: init containers one after the other, then the main containers."""
        for spec in ephemeral_containers(self.pod):
            self._move(EPHEMERAL, spec)
        was_initialized = has_run_any(self.pod, self.statuses)
        for spec in init_containers(self.pod):
            self._move(INIT, spec)
            self._apply_probe(INIT, spec)  # only for this one: a pod may have thousands
            if not was_initialized and is_waited_for(spec, self.statuses):
                return
        for spec in containers(self.pod):
            self._move(MAIN, spec)
        if not any(self._goes_on(spec) for spec in containers(self.pod)):
            self._end(filter(is_sidecar, init_containers(self.pod)))

    def _goes_on(self, spec: Container) -> bool:
        code = container.exit_code(self.statuses[spec["name"]])
        return code is None or container.should_restart(self.pod, spec, code)

    def _end(self, specs: Iterable[Container]) -> None:
        """End the containers that run."""
        for spec in specs:
            status = self.statuses[spec["name"]]
            if container.started_at(status):
                self.statuses[spec["name"]] = container.ended(status, self.context.now, 0)

    def _move(self, place: str, spec: Container) -> None:
        """Start a container, end it, let it back off and restart it, as far as that is due."""
        command = command_plan(self._pod_with_addresses, spec) if self._understands_commands else None
        plan = run_plan(self.pod, place, spec, job_seconds=self.context.job_seconds, command=command)
        status = self.statuses[spec["name"]]
        if not container.has_run(status):
            status = self._started(status, spec)
        while (moved := self._moved(status, spec, plan, place)) is not status:
            status = moved
        self.statuses[spec["name"]] = status

    @cached_property
    def _understands_commands(self) -> bool:
        return self.context.understands_commands and has_short_commands(self.pod)

    @cached_property
    def _pod_with_addresses(self) -> PodObject:
        """The pod as its containers see it when they start: its addresses come with the status of that moment."""
        return {**self.pod, "status": {**network(self.pod, self.context), **self.pod.get("status", {})}}

    def _moved(self, status: ContainerStatus, spec: Container, plan: RunPlan, place: str) -> ContainerStatus:
        if end := container.run_end(status, plan):
            return container.ended(status, end, plan.exit_code) if self._is_due(end) else status
        if "running" in status["state"]:
            return status
        code, is_init = container.exit_code(status), place == INIT and not is_sidecar(spec)
        can_restart = place != EPHEMERAL and container.should_restart(self.pod, spec, code, is_init=is_init)
        if code is not None and not can_restart:
            return status
        again = container.backoff_end(status)
        if again is None or self._is_due(again):
            return self._started(status, spec)
        return status if code is None else container.backing_off(status, full_name(self.pod))

    def _started(self, status: ContainerStatus, spec: Container) -> ContainerStatus:
        return container.started(status, spec, self.pod["metadata"]["uid"], self.context.now)

    def _apply_probes(self) -> None:
        """Set `started` and `ready` as probes would have by now; all probes succeed."""
        for place, spec in placed_containers(self.pod):
            self._apply_probe(place, spec)

    def _apply_probe(self, place: str, spec: Container) -> None:
        if place == EPHEMERAL:
            return  # ephemeral containers have no probes and are never ready
        status = self.statuses[spec["name"]]
        began = container.started_at(status)
        is_up = began is not None and self._is_due(_probed_at(began, spec, "startupProbe"))
        if place == INIT and not is_sidecar(spec):
            is_ready = container.exit_code(status) == 0
        else:
            is_ready = is_up and began is not None and self._is_due(_probed_at(began, spec, "readinessProbe"))
        self.statuses[spec["name"]] = {**status, "started": is_up, "ready": is_ready}

    def _is_due(self, at: datetime) -> bool:
        """Return whether a time has come; a time in the future is one to sync at."""
        if at <= self.context.now:
            return True
        self.due.append(at)
        return False

    def _ended(self, end: Termination) -> PodStatus:
        """Return the last status: no container runs, and the phase is final."""
        was_initialized = is_initialized(self.pod, self.statuses)
        for name, running in self.statuses.items():
            self.statuses[name] = container.stopped(running, min(end.at, self.context.now), end.exit_code)
        self._apply_probes()
        last = phase(self.pod, self.statuses, is_over=True)
        status = self._status(FAILED if end.reason else last, has_sandbox=False)
        if was_initialized:  # as kubelet: containers that could have run and did not are lost
            status["containerStatuses"] = list(map(container.with_unknown_end, status["containerStatuses"]))
        if last == PENDING:
            status["phase"] = FAILED
        if end.reason:
            status |= {"reason": end.reason, "message": end.message}
        return with_disruption(self.pod, status, end.disruption, self.context.now) if end.disruption else status

    def _status(self, now_phase: str, *, has_sandbox: bool) -> PodStatus:
        return pod_status(self.pod, self.statuses, now_phase, self.context, has_sandbox=has_sandbox)


def _probed_at(began: datetime, spec: Container, probe: Literal["startupProbe", "readinessProbe"]) -> datetime:
    return began + timedelta(seconds=clamp_seconds((spec.get(probe) or {}).get("initialDelaySeconds")))
