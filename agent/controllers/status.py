"""Snapshot → desired → patch, on its own rhythm."""

import logging
from collections.abc import Callable
from math import inf

from agent.controllers.registration import NodeRegistrar
from agent.controllers.state import NodeState
from agent.core.events import schedulable_events, start_events, status_events
from agent.core.metrics import Counter
from agent.core.model import NodeObject, NodeStatus
from agent.core.node import with_own_metadata, with_registered_metadata
from agent.core.nodestatus import Facts, desired_status, find_condition, is_blank, is_ready
from agent.core.patch import is_changed, node_patch
from agent.core.schedule import ReportSchedule, coalesced, jittered
from agent.machinery.backoff import Backoff
from agent.machinery.runner import Scheduling
from agent.ports import ApiError, NodeApi, NotFound, Recorder

log = logging.getLogger(__name__)

_JITTER = 0.04  # as kubelet
_TRIES = 5  # as kubelet


class StatusController:
    """Keeps the Node's status true: computed often, sent when it changed or a report is due."""

    def __init__(
        self,
        state: NodeState,
        *,
        nodes: NodeApi,
        registration: NodeRegistrar,
        events: Recorder,
        scheduling: Scheduling,
        on_deleted: Callable[[str], None],
    ) -> None:
        self.isolation = scheduling.isolation()
        self._state = state
        self._heartbeat = state.config.heartbeat
        self._nodes = nodes
        self._registration = registration
        self._events = events
        self._on_deleted = on_deleted
        self._queue = scheduling.queue
        self._connectivity = scheduling.dependencies.connectivity
        self._clock = scheduling.clock
        self._rand = scheduling.dependencies.rand
        self._health = scheduling.health
        self._schedule = ReportSchedule(self._heartbeat.status_report_seconds)
        self._backoff = Backoff(self._clock, 0.0, 0.0, rand=self._rand)  # only as long as the API server asks for
        self._settled_at = 0.0
        self._settled_inputs: tuple[object, ...] | None = None  # those of the last status that was as reported
        self._pod_cidrs: list[str] = []
        self._cordoned = False
        self._is_first = True
        self._fails = False
        self._reports = scheduling.dependencies.metrics.register(
            Counter(
                "fake_kubelet_status_reports_total",
                "Status reports that were sent, skipped because nothing had changed, or failed.",
                ("outcome", "reason"),
            )
        )

    def start(self) -> None:
        """Register, and report as soon as anything changes that the status depends on."""
        self._state.on_changed(lambda: self._queue.add(self))
        self._queue.add(self)

    async def sync(self) -> float:
        """Bring the Node's status up to date once. Returns the seconds until the next call.

        A failure is logged and left to the next tick; while there is no Node, it is registered instead.
        """
        if self._state.is_final:
            self._on_deleted(self._state.name)
            return inf
        if self._state.wants_registration:
            if delay_seconds := await self._registration.sync():
                self._connectivity.on_recovered(self._on_recovered)
                return delay_seconds
            self._settled_at = self._clock.monotonic() + self._state.settle_seconds
        if left_seconds := self._backoff.left_seconds or self._settle_seconds():
            return left_seconds
        self._settled_at = 0.0
        began_seconds = self._clock.monotonic()
        for tries_left in reversed(range(_TRIES)):
            if self._state.wants_registration:
                break  # deleted meanwhile, which has woken us already
            try:
                await self._update(first=tries_left == _TRIES - 1)
            except ApiError as error:
                self._failed(error)
                if error.retry_after_seconds:
                    return self._backoff.next(error)
            else:
                self._succeeded(began_seconds)
                break
        else:
            self._reports.add("failed", "error")
            log.error("Unable to update node status", {"err": "update node status exceeds retry count"})
        period_seconds = self._heartbeat.status_update_seconds
        return coalesced(self._clock.monotonic(), period_seconds, jittered(period_seconds, _JITTER, self._rand()))

    def _settle_seconds(self) -> float:
        """How long to let the CSINode come first, so that the first report can say Ready.

        Better than kubelet, whose first report may be quicker, and calls a Node not ready that was Ready all along.
        """
        waits = self._state.problems and not self._state.is_held_back
        return max(0.0, self._settled_at - self._clock.monotonic()) if waits else 0.0

    def _on_recovered(self, delay_seconds: float) -> None:
        self._registration.backoff.cut_short()
        self._queue.add_after(self, delay_seconds)

    def _succeeded(self, began_seconds: float) -> None:
        self._backoff.reset()
        self._health.ok(self._clock.monotonic() - began_seconds)
        if self._fails:
            self._fails = False
            self._connectivity.notify_recovered()

    async def _current(self, *, first: bool) -> NodeObject:
        """The Node; a first try takes what the watch has shown, as kubelet does with its informer."""
        if first and (cached := self._state.node()):
            return cached
        if first and self._state.is_synced:
            raise NotFound(f'node "{self._state.name}" not found')
        node = await self._nodes.get(self._state.name)
        self._state.put(node)
        return node

    async def _update(self, *, first: bool) -> None:
        uid, inputs = self._state.uid, await self._state.inputs()
        if inputs == self._settled_inputs and not self._schedule.due(self._clock.monotonic()):
            self._reports.add("skipped", "unchanged")
            return
        try:
            is_sent = await self._bring_up_to_date(await self._current(first=first))
            self._settled_inputs = None if is_sent else inputs
        except NotFound:
            if self._state.uid == uid:  # or the Node is newer than the answer
                self._state.forget()
            raise

    async def _bring_up_to_date(self, node: NodeObject) -> bool:
        """Report the status if it changed or a report is due; return whether it was sent."""
        facts = await self._state.facts(node.get("status", {}))
        desired = desired_status(facts)
        if desired.errors:
            log.error(
                "Failed to set some node status fields", {"err": "; ".join(desired.errors), "node": self._state.name}
            )
        with_metadata = with_registered_metadata if self._registers_too(node) else with_own_metadata
        patch = node_patch(node, {**with_metadata(node, facts), "status": desired.status})
        changed = self._pod_cidr_changed(node) or is_changed(patch)
        now_seconds = self._clock.monotonic()
        is_sent = changed or self._schedule.due(now_seconds)
        if is_sent:
            self._state.put(await self._nodes.patch_status(self._state.name, patch))
            self._schedule = self._schedule.after(now_seconds, changed=changed, rand=self._rand())
            self._reports.add("sent", "changed" if changed else "due")
        else:
            self._reports.add("skipped", "unchanged")
        if is_ready(desired.status):
            self._state.startup.ready()
        self._record_changes(node, facts, desired.status)
        return is_sent

    def _registers_too(self, node: NodeObject) -> bool:
        """Whether the report mends what registration mends: a Node that nobody has reported on costs one request."""
        return self._state.asks_less and self._state.config.registration.register_node and is_blank(node)

    def _record_changes(self, node: NodeObject, facts: Facts, status: NodeStatus) -> None:
        """Record what changed: an event is the difference between two states."""
        cordoned = bool(node.get("spec", {}).get("unschedulable"))
        events = [
            *(start_events(self._state.name, facts.observed, facts.host) if self._is_first else ()),
            *status_events(self._state.name, facts.observed, status),
            *schedulable_events(self._state.name, was_cordoned=self._cordoned, is_cordoned=cordoned),
        ]
        self._cordoned, self._is_first = cordoned, False
        for event in events:
            self._events.record(event)
        if is_ready(facts.observed) and not is_ready(status):
            log.info("Node became not ready", {"node": self._state.name, "condition": find_condition(status, "Ready")})

    def _pod_cidr_changed(self, node: NodeObject) -> bool:
        """A pod CIDR seen for the first time counts as a change, as kubelet has it."""
        cidrs = node.get("spec", {}).get("podCIDRs") or []
        if not cidrs or cidrs == self._pod_cidrs:
            return False
        log.info("Updating Pod CIDR", {"originalPodCIDR": ",".join(self._pod_cidrs), "newPodCIDR": ",".join(cidrs)})
        self._pod_cidrs = cidrs
        return True

    def _failed(self, error: ApiError) -> None:
        self._fails = True
        if isinstance(error, NotFound):
            self._health.settled()  # there is no Node to report; the registration has a failure of its own
        else:
            self._health.failed(error)
        log.error("Error updating node status, will retry", {"err": error})
