"""The life of a pod: its status now, and when it changes next, from the status that the API shows.

Nothing else is remembered, so a pod goes on where it was when another process takes over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods import container as one
from agent.core.pods.conditions import has_run_any, is_initialized, is_waited_for, phase
from agent.core.pods.ending import Stop, stop
from agent.core.pods.parts import (
    EPHEMERAL,
    FAILED,
    INIT,
    MAIN,
    PENDING,
    SUCCEEDED,
    bounded,
    container_statuses,
    containers,
    ephemeral_containers,
    full_name,
    init_containers,
    is_begun,
    is_sidecar,
    is_terminal,
    placed_containers,
)
from agent.core.pods.restarts import is_restarted
from agent.core.pods.script import Script, script
from agent.core.pods.status import Setting, pod_status, with_disruption


class Turn(NamedTuple):
    """The status of a pod from now on, and when it changes by itself; None for never."""

    status: Object
    next_at: datetime | None


def turn(pod: Object, setting: Setting) -> Turn:
    """What the status of a pod that the node has taken on should be now."""
    if is_terminal(pod):
        return Turn(pod["status"], None)
    return _Life(pod, setting).turn()


@dataclass(slots=True)
class _Life:
    pod: Object
    setting: Setting
    statuses: dict[str, Object] = field(default_factory=dict)  # of each container, by its name
    due: list[datetime] = field(default_factory=list)  # when something happens by itself

    def turn(self) -> Turn:
        self.statuses = self._remembered()
        end = stop(self.pod, self.setting.order)
        if end and self._is_due(end.at):
            return Turn(self._ended(end), None)
        has_sandbox = self._has_sandbox()
        if has_sandbox and not (end and end.told_at <= self.setting.now):
            self._advance()
        self._notice_probes()
        now_phase = phase(self.pod, self.statuses, is_over=False)
        if now_phase in {SUCCEEDED, FAILED}:
            # As kubelet: the end is not told while anything runs, be it a debugger or a sidecar of init containers.
            self._end(spec for _, spec in placed_containers(self.pod))
            self._notice_probes()
            return Turn(self._status(now_phase, has_sandbox=False), None)
        return Turn(self._status(now_phase, has_sandbox=has_sandbox), min(self.due, default=None))

    def _remembered(self) -> dict[str, Object]:
        """The status of each container as the API shows it; one that it does not show waits."""
        known = {each["name"]: each for each in container_statuses(self.pod.get("status", {}))}
        reason = "PodInitializing" if init_containers(self.pod) else "ContainerCreating"
        found = {}
        for _, spec in placed_containers(self.pod):
            each = one.dated(one.waiting(spec, reason) | known.get(spec["name"], {}), self.setting.now)
            found[spec["name"]] = one.sized(each, spec) if one.started_at(each) else each
        return found

    def _has_sandbox(self) -> bool:
        """Whether containers can be started: not in the first moment, and not without an address."""
        if not is_begun(self.pod):
            self.due.append(self.setting.now)
            return False
        return self.setting.pod_ips is not None or any(map(one.has_run, self.statuses.values()))

    def _advance(self) -> None:
        """Let every container do what is due: init containers one after the other, then all others."""
        for spec in ephemeral_containers(self.pod):
            self._move(EPHEMERAL, spec)
        was_initialized = has_run_any(self.pod, self.statuses)
        for spec in init_containers(self.pod):
            self._move(INIT, spec)
            self._notice_probe(INIT, spec)  # of this one only: a pod may have thousands
            if not was_initialized and is_waited_for(spec, self.statuses):
                return
        for spec in containers(self.pod):
            self._move(MAIN, spec)
        if not any(self._goes_on(spec) for spec in containers(self.pod)):
            self._end(filter(is_sidecar, init_containers(self.pod)))

    def _goes_on(self, spec: Object) -> bool:
        code = one.exit_code(self.statuses[spec["name"]])
        return code is None or is_restarted(self.pod, spec, code)

    def _end(self, specs: Iterable[Object]) -> None:
        """Stop those of the containers that run."""
        for spec in specs:
            status = self.statuses[spec["name"]]
            if one.started_at(status):
                self.statuses[spec["name"]] = one.ended(status, self.setting.now, 0)

    def _move(self, place: str, spec: Object) -> None:
        """One container: start it, end it, hold it back, start it again."""
        plan = script(self.pod, place, spec, job_seconds=self.setting.job_seconds)
        status = self.statuses[spec["name"]]
        if not one.has_run(status):
            status = self._started(status, spec)
        while (moved := self._moved(status, spec, plan, place)) is not status:
            status = moved
        self.statuses[spec["name"]] = status

    def _moved(self, status: Object, spec: Object, plan: Script, place: str) -> Object:
        if end := one.run_end(status, plan):
            return one.ended(status, end, plan.exit_code) if self._is_due(end) else status
        if "running" in status["state"]:
            return status
        code, is_init = one.exit_code(status), place == INIT and not is_sidecar(spec)
        if code is not None and (place == EPHEMERAL or not is_restarted(self.pod, spec, code, is_init=is_init)):
            return status
        again = one.back_off_end(status)
        if again is None or self._is_due(again):
            return self._started(status, spec)
        return status if code is None else one.held_back(status, full_name(self.pod))

    def _started(self, status: Object, spec: Object) -> Object:
        return one.started(status, spec, self.pod["metadata"]["uid"], self.setting.now)

    def _notice_probes(self) -> None:
        """Started and ready as far as the probes, which always succeed, would have said by now."""
        for place, spec in placed_containers(self.pod):
            self._notice_probe(place, spec)

    def _notice_probe(self, place: str, spec: Object) -> None:
        if place == EPHEMERAL:
            return  # has none, and is never called ready
        status = self.statuses[spec["name"]]
        began = one.started_at(status)
        is_up = began is not None and self._is_due(_probed_at(began, spec, "startupProbe"))
        if place == INIT and not is_sidecar(spec):
            is_ready = one.exit_code(status) == 0
        else:
            is_ready = is_up and began is not None and self._is_due(_probed_at(began, spec, "readinessProbe"))
        self.statuses[spec["name"]] = {**status, "started": is_up, "ready": is_ready}

    def _is_due(self, at: datetime) -> bool:
        """Whether a moment has come; if not, it is one to wake up for."""
        if at <= self.setting.now:
            return True
        self.due.append(at)
        return False

    def _ended(self, end: Stop) -> Object:
        """The last status: no container runs any more, and the phase is terminal."""
        was_initialized = is_initialized(self.pod, self.statuses)
        for name, status in self.statuses.items():
            self.statuses[name] = one.stopped(status, min(end.at, self.setting.now), end.exit_code)
        self._notice_probes()
        last = phase(self.pod, self.statuses, is_over=True)
        status = self._status(FAILED if end.reason else last, has_sandbox=False)
        if was_initialized:  # what never ran of a pod that was ready to run it counts as lost
            status["containerStatuses"] = [one.accounted_for(each) for each in status["containerStatuses"]]
        if last == PENDING:
            status["phase"] = FAILED
        if end.reason:
            status |= {"reason": end.reason, "message": end.message}
        return with_disruption(self.pod, status, end.disruption, self.setting.now) if end.disruption else status

    def _status(self, now_phase: str, *, has_sandbox: bool) -> Object:
        return pod_status(self.pod, self.statuses, now_phase, self.setting, has_sandbox=has_sandbox)


def _probed_at(began: datetime, spec: Object, probe: str) -> datetime:
    return began + timedelta(seconds=bounded((spec.get(probe) or {}).get("initialDelaySeconds")))
