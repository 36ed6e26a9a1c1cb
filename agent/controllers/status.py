"""Snapshot → desired → patch, on its own rhythm."""

import logging
import random

from agent.controllers.registration import Registration
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
from agent.loops.startup import Startup
from agent.loops.weather import Weather
from agent.machinery.backoff import Backoff
from agent.machinery.health import UNHEARD, Beat
from agent.machinery.isolation import Isolation
from agent.machinery.runner import Controller
from agent.machinery.workqueue import WorkQueue
from agent.ports import ApiError, Clock, NodeApi, NotFound, Rand, Recorder

log = logging.getLogger(__name__)

_JITTER = 0.04  # as kubelet
_TRIES = 5  # as kubelet
_SETTLE_SECONDS = 3.0  # a healthy API server shows a CSINode much sooner


class StatusController:
    """Keeps the Node's status true: computed often, sent when it changed or a report is due."""

    def __init__(
        self,
        *,
        config: Config,
        nodes: NodeApi,
        observer: Observer,
        readiness: Readiness,
        registration: Registration,
        own: OwnNode,
        membership: Membership,
        weather: Weather,
        events: Recorder,
        clock: Clock,
        isolation: Isolation,
        queue: WorkQueue[Controller],
        beat: Beat = UNHEARD,
        startup: Startup | None = None,
        rand: Rand = random.random,
    ) -> None:
        self.isolation = isolation
        self._config = config
        self._name = config.node_name
        self._nodes = nodes
        self._observer = observer
        self._readiness = readiness
        self._registration = registration
        self._own = own
        self._membership = membership
        self._weather = weather
        self._events = events
        self._clock = clock
        self._queue = queue
        self._beat = beat
        self._startup = startup
        self._rand = rand
        self._schedule = ReportSchedule(config.heartbeat.status_report_seconds)
        self._backoff = Backoff(clock, 0.0, 0.0, rand=rand)  # only as long as the API server asks for
        self._settled_at = 0.0
        self._pod_cidrs: list[str] = []
        self._cordoned = False
        self._is_first = True
        self._fails = False
        self.reports = Counter(
            "fake_kubelet_status_reports_total",
            "Status reports that were sent, skipped because nothing was to be told, or failed.",
            ("outcome", "reason"),
        )

    def start(self) -> None:
        """Register, and report as soon as anything changes that the status depends on."""
        self._readiness.subscribe(lambda: self._queue.add(self))
        self._queue.add(self)

    async def sync(self) -> float:
        """Bring the Node's status up to date once. Returns the seconds until the next call.

        A failure is logged and left to the next tick; while there is no Node, it is registered instead.
        """
        self._membership.check()
        if self._config.registration.register_node and self._membership.wants_registration:
            if delay_seconds := await self._registration.sync():
                self._weather.on_recovered(self._on_recovered)
                return delay_seconds
            self._settled_at = self._clock.monotonic() + _SETTLE_SECONDS
        if left_seconds := self._backoff.left_seconds or self._settle_seconds():
            return left_seconds
        self._settled_at = 0.0
        began_seconds = self._clock.monotonic()
        for tries_left in reversed(range(_TRIES)):
            if self._membership.wants_registration:
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
            self.reports.add("failed", "error")
            log.error("Unable to update node status", {"err": "update node status exceeds retry count"})
        return jittered(self._config.heartbeat.status_update_seconds, _JITTER, self._rand())

    def _settle_seconds(self) -> float:
        """How long to let the CSINode come first, so that the first report can say Ready.

        Better than kubelet, whose first report may be quicker, and calls a Node not ready that was Ready all along.
        """
        return max(0.0, self._settled_at - self._clock.monotonic()) if self._readiness.problems else 0.0

    def _on_recovered(self) -> None:
        self._registration.backoff.cut_short()
        self._queue.add(self)

    def _succeeded(self, began_seconds: float) -> None:
        self._backoff.reset()
        self._beat.ok(self._clock.monotonic() - began_seconds)
        if self._fails:
            self._fails = False
            self._weather.improved()

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

    def _failed(self, error: ApiError) -> None:
        self._fails = True
        if isinstance(error, NotFound):
            self._beat.settled()  # there is no Node to tell about; to register it is another matter
        else:
            self._beat.failed(error)
        log.error("Error updating node status, will retry", {"err": error})
