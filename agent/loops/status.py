"""Snapshot → desired → patch, on its own rhythm."""

import logging
import random

from agent.core.conditions import find_condition, is_ready
from agent.core.config import Config
from agent.core.events import schedulable_events, start_events, status_events
from agent.core.facts import Facts
from agent.core.model import Object
from agent.core.node import with_own_metadata
from agent.core.patch import is_changed, node_patch
from agent.core.schedule import ReportSchedule, jittered
from agent.core.status import desired_status
from agent.core.tally import Counter
from agent.loops.membership import Membership
from agent.loops.observe import Observer
from agent.loops.ownnode import OwnNode
from agent.loops.readiness import Readiness
from agent.loops.register import Registrar
from agent.loops.retry import five_tries
from agent.loops.startup import Startup
from agent.loops.weather import Weather
from agent.machinery.health import UNHEARD, Beat
from agent.ports import ApiError, Clock, NodeApi, NotFound, Rand, Recorder

log = logging.getLogger(__name__)

_JITTER = 0.04  # as kubelet
_SETTLE_SECONDS = 3.0  # a healthy API server shows a CSINode much sooner


class StatusLoop:
    """Keeps the Node's status true: computed often, sent when it changed or a report is due."""

    def __init__(
        self,
        *,
        config: Config,
        nodes: NodeApi,
        observer: Observer,
        readiness: Readiness,
        registrar: Registrar,
        own: OwnNode,
        membership: Membership,
        weather: Weather,
        events: Recorder,
        clock: Clock,
        beat: Beat = UNHEARD,
        startup: Startup | None = None,
        rand: Rand = random.random,
    ) -> None:
        self._config = config
        self._name = config.node_name
        self._nodes = nodes
        self._observer = observer
        self._readiness = readiness
        self._registrar = registrar
        self._own = own
        self._membership = membership
        self._weather = weather
        self._events = events
        self._clock = clock
        self._beat = beat
        self._startup = startup
        self._rand = rand
        self._schedule = ReportSchedule(config.heartbeat.status_report_seconds)
        self._pod_cidrs: list[str] = []
        self._cordoned = False
        self._is_first = True
        self._fails = False
        self.reports = Counter(
            "fake_kubelet_status_reports_total",
            "Status reports that were sent, skipped because nothing was to be told, or failed.",
            ("outcome", "reason"),
        )

    async def run(self) -> None:
        """Register, then report forever; a change of readiness does not wait for the next tick."""
        while True:
            self._readiness.changed.clear()
            await self.sync()
            pause_seconds = jittered(self._config.heartbeat.status_update_seconds, _JITTER, self._rand())
            await self._clock.wait(self._readiness.changed, pause_seconds)

    async def sync(self) -> None:
        """Bring the Node's status up to date once; a failure is logged and left to the next tick."""
        self._membership.check()
        if self._config.registration.register_node and await self._registrar.register():
            await self._settle()
        began = self._clock.monotonic()
        try:
            async for attempt in five_tries(self._weather, self._failed):
                with attempt:
                    if self._membership.wants_registration:
                        return  # deleted meanwhile, which has woken us already
                    await self._update(first=attempt.retry_state.attempt_number == 1)
        except ApiError:
            self.reports.add("failed", "error")
            log.error("Unable to update node status", {"err": "update node status exceeds retry count"})
        else:
            self._beat.ok(self._clock.monotonic() - began)
            if self._fails:
                self._fails = False
                self._weather.improved()

    async def _settle(self) -> None:
        """Let the CSINode come first, so that the first report can say Ready.

        Better than kubelet, whose first report may be quicker, and calls a Node not ready that was Ready all along.
        """
        end = self._clock.monotonic() + _SETTLE_SECONDS
        while self._readiness.problems and (left := end - self._clock.monotonic()) > 0:
            self._readiness.changed.clear()
            await self._clock.wait(self._readiness.changed, left)

    async def _current(self, *, first: bool) -> Object:
        """The Node; a first try takes what the watch has shown, as kubelet does with its informer."""
        if first and self._own.node:
            return self._own.node
        if first and self._own.is_known:
            raise NotFound(f'node "{self._name}" not found')
        node = await self._nodes.get(self._name)
        self._own.put(node)
        return node

    async def _update(self, *, first: bool) -> None:
        try:
            await self._bring_up_to_date(await self._current(first=first))
        except NotFound:
            self._own.forget()
            raise

    async def _bring_up_to_date(self, node: Object) -> None:
        facts = await self._observer.facts(node.get("status", {}))
        desired = desired_status(facts)
        if desired.errors:
            log.error("Failed to set some node status fields", {"err": "; ".join(desired.errors), "node": self._name})
        patch = node_patch(node, {**with_own_metadata(node, facts), "status": desired.status})
        changed = self._pod_cidr_changed(node) or is_changed(patch)
        now_seconds = self._clock.monotonic()
        if changed or self._schedule.due(now_seconds):
            self._own.put(await self._nodes.patch_status(self._name, patch))
            self._schedule = self._schedule.after(now_seconds, changed=changed, rand=self._rand())
            self.reports.add("sent", "changed" if changed else "due")
        else:
            self.reports.add("skipped", "unchanged")
        if self._startup and is_ready(desired.status):
            self._startup.ready()
        self._tell(node, facts, desired.status)

    def _tell(self, node: Object, facts: Facts, status: Object) -> None:
        """Record what changed: an event is the difference between two states."""
        cordoned = bool(node.get("spec", {}).get("unschedulable"))
        events = [
            *(start_events(self._name, facts.observed, facts.host) if self._is_first else ()),
            *status_events(self._name, facts.observed, status),
            *schedulable_events(self._name, was_cordoned=self._cordoned, is_cordoned=cordoned),
        ]
        self._cordoned, self._is_first = cordoned, False
        for event in events:
            self._events.record(event)
        if is_ready(facts.observed) and not is_ready(status):
            log.info("Node became not ready", {"node": self._name, "condition": find_condition(status, "Ready")})

    def _pod_cidr_changed(self, node: Object) -> bool:
        """A pod CIDR seen for the first time counts as a change, as kubelet has it."""
        cidrs = node.get("spec", {}).get("podCIDRs") or []
        if not cidrs or cidrs == self._pod_cidrs:
            return False
        log.info("Updating Pod CIDR", {"originalPodCIDR": ",".join(self._pod_cidrs), "newPodCIDR": ",".join(cidrs)})
        self._pod_cidrs = cidrs
        return True

    def _failed(self, error: ApiError, _: float) -> None:
        self._fails = True
        if isinstance(error, NotFound):
            self._beat.settled()  # there is no Node to tell about; to register it is another matter
        else:
            self._beat.failed(error)
        log.error("Error updating node status, will retry", {"err": error})
