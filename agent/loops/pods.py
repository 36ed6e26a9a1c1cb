"""Keep the pods that are bound to the node as a kubelet would: nothing is run, but the API sees the same."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from agent.core.config import Config
from agent.core.facts import timestamp
from agent.core.model import Object
from agent.core.pods.addresses import Exhausted, host_addresses, pod_ranges
from agent.core.pods.admission import (
    NODE_AFFINITY,
    REFUSED,
    Premises,
    Refusal,
    no_room,
    refusal,
    rejected_status,
    shortages,
)
from agent.core.pods.ending import Order
from agent.core.pods.events import PodEvent, pod_events, reference, removal_events
from agent.core.pods.life import Turn, turn
from agent.core.pods.parts import is_begun, is_critical, is_doomed, is_mirror, is_terminal, moment, on_host_network
from agent.core.pods.patch import status_patch
from agent.core.pods.preemption import Missing, is_preemptable, making_room, unmet, victims
from agent.core.pods.status import Setting
from agent.klog import V2
from agent.loops.observe import Observer
from agent.loops.ownnode import OwnNode
from agent.loops.podstore import CachedPod, PodStore, uid_of
from agent.loops.readiness import Readiness
from agent.loops.staticpods import StaticPodLoop
from agent.machinery.health import UNHEARD, Beat
from agent.machinery.isolation import Attempt, UnexpectedErrors
from agent.machinery.workqueue import WorkQueue
from agent.ports import ApiError, Clock, NodeApi, NotFound, PodApi, Recorder

log = logging.getLogger(__name__)

_AT_ONCE = 8  # requests under way: enough for hundreds of pods in seconds, few enough for any API server
_AGAIN_SECONDS = 10.0  # as kubelet's status manager: what failed is tried again with the next pass
_NO_NODE_SECONDS = 1.0
_ROOM_SECONDS = 0.2  # how often is looked whether those who have to go have gone
_NO_RANGE_SECONDS = 10.0  # a cluster that gives out ranges has done so by then


class PodLoop:
    """Tends the pods of one node; the watch tells it of them."""

    def __init__(
        self,
        *,
        config: Config,
        pods: PodApi,
        nodes: NodeApi,
        own: OwnNode,
        observer: Observer,
        readiness: Readiness,
        events: Recorder,
        clock: Clock,
        store: PodStore | None = None,
        static: StaticPodLoop | None = None,
        beat: Beat = UNHEARD,
        unexpected: UnexpectedErrors | None = None,
    ) -> None:
        self._config = config
        self._api = pods
        self._nodes = nodes
        self._own = own
        self._observer = observer
        self._readiness = readiness
        self._events = events
        self._clock = clock
        self._static = static
        self.store = store or PodStore()
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self._unkept: dict[str, Object] = {}  # pods that the store could not take, by UID
        unexpected = unexpected or UnexpectedErrors(config.node_name, clock)
        self._isolation = unexpected.isolation("pods", beat, size=lambda: self.store.size + len(self._unkept))

    def reset(self, objects: Sequence[Object], version: str) -> None:
        """All pods at a version; the oldest come first, as a kubelet admits them."""
        for uid in self.store.stale(objects):
            self._forget(uid)
        self._unkept.clear()
        for pod in sorted(objects, key=lambda pod: str(pod["metadata"].get("creationTimestamp"))):
            self.put(pod)

    def put(self, pod: Object) -> None:
        """A pod as the API has it; an older state than the one known is no news."""
        uid = uid_of(pod)
        try:
            is_news = self.store.upsert(pod)
        except Exception:  # whoever tends it meets the same error, tells it and tries again
            self._unkept[uid], is_news = pod, True
        else:
            self._unkept.pop(uid, None)
        if is_news:  # one that fails all the time is not tried at once with each of its changes
            self._queue.add_after(uid, min(self._isolation.pause_seconds(uid), _AGAIN_SECONDS))

    def remove(self, pod: Object) -> None:
        """A pod is gone; whoever removed it may not have waited for us."""
        self._removed(uid_of(pod), is_mirror=is_mirror(pod))

    def _removed(self, uid: str, *, is_mirror: bool) -> None:
        self._forget(uid)
        if self._static and is_mirror:
            self._static.missing.set()

    def kill(self, uid: str, order: Order) -> None:
        """Have the node end a pod; a second request for the same pod is ignored."""
        if cached := self.store.get(uid):
            cached.kill_request = cached.kill_request or order
            self._queue.add(uid)

    async def run(self) -> None:
        """Tend forever, several pods at a time."""
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_ONCE):
                group.create_task(self._work(), name=f"{type(self).__name__}-{number}")

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            try:
                with self._isolation.attempt(uid, pod=self._name(uid), podUID=uid) as attempt:
                    await self.sync(uid)
                self._retry(uid, attempt)
            finally:
                self._queue.done(uid)

    def _name(self, uid: str) -> str:
        cached, unkept = self.store.get(uid), self._unkept.get(uid)
        return cached.info.full_name if cached else _name(unkept) if unkept else ""

    def _retry(self, uid: str, attempt: Attempt) -> None:
        """Try a pod again that failed for a reason that nobody expected, if it is still there."""
        if attempt.retry_seconds is None:
            return
        if self.store.get(uid) or uid in self._unkept:
            self._queue.add_after(uid, attempt.retry_seconds)
        else:
            self._isolation.forget(uid)

    async def sync(self, uid: str) -> None:
        """Bring one pod up to date; a failure is logged and left to a later try."""
        if pod := self._unkept.get(uid):
            self.store.upsert(pod)
            del self._unkept[uid]
        cached = self.store.get(uid)
        if cached is None:
            return
        try:
            if cached.info.is_mirror:
                await self._show(uid, cached)
            else:
                await self._tend(uid, cached)
        except NotFound:
            log.log(V2, "Pod does not exist on the server", {"pod": cached.info.full_name, "podUID": uid})
            self._removed(uid, is_mirror=cached.info.is_mirror)  # the watch will report it, too
        except ApiError as error:
            log.error("Failed to update status for pod", {"err": error, "pod": cached.info.full_name})
            self._queue.add_after(uid, _AGAIN_SECONDS)

    async def _show(self, uid: str, cached: CachedPod) -> None:
        """A mirror pod is tended while it shows a static pod as it is now; otherwise it goes at once."""
        is_wanted = self._static.wants(cached.info.mirror_hash or "") if self._static else False
        if is_wanted is None:
            self._queue.add_after(uid, _NO_NODE_SECONDS)
        elif is_wanted and not cached.info.is_terminating:
            await self._tend(uid, cached)
            self._queue.add_after(uid, self._config.pods.manifest_check_seconds)  # the file may change
        else:
            await self._remove(cached, cached.decode())

    async def _tend(self, uid: str, cached: CachedPod) -> None:
        """Send one status after the other until there is nothing new, then remove what has ended."""
        sent = None
        while True:
            node, pod = self._own.node, cached.decode()
            if node is None:
                self._queue.add_after(uid, _NO_NODE_SECONDS)
                return
            status, next_at = self._turn(cached, pod, node)
            if status.get("reason") == NODE_AFFINITY and not is_begun(pod):
                status, next_at = self._turn(cached, pod, await self._fresh(node))
            patch = status_patch(pod, status)
            if patch is None or patch == sent:
                break
            if not await self._send(cached, pod, status, patch):
                return
            sent = patch
        if next_at is not None:
            self._queue.add_after(uid, max(0.0, (next_at - self._clock.now()).total_seconds()))
        if is_doomed(pod) and is_terminal(pod):
            await self._remove(cached, pod)

    async def _fresh(self, node: Object) -> Object:
        """The Node as it is now: as kubelet reads it before it refuses a pod for labels that may be old."""
        try:
            self._own.put(await self._nodes.get(self._config.node_name))
        except ApiError as error:
            log.error("Failed to synchronously fetch node info", {"err": error})
        return self._own.node or node

    async def _send(self, cached: CachedPod, pod: Object, status: Object, patch: Object) -> bool:
        """Tell the status; whether the pod is still there: where the watch saw it go meanwhile, the answer is old."""
        answer = await self._api.patch_status(pod["metadata"]["namespace"], pod["metadata"]["name"], patch)
        if not cached.is_removal_reported:
            self._tell(pod, *pod_events(pod, status))
        if self.store.get(uid_of(pod)) is not cached:
            self._events.forget(uid_of(pod))
            return False
        self.store.upsert(answer)
        return True

    async def _remove(self, cached: CachedPod, pod: Object) -> None:
        """The last word about a pod that has ended; one with finalizers waits for others then."""
        metadata = pod["metadata"]
        if not cached.is_deleted and metadata.get("deletionGracePeriodSeconds") != 0:
            await self._api.delete(metadata["namespace"], metadata["name"], metadata["uid"])
            cached.is_deleted = True
            log.log(V2, "Pod fully terminated and removed from etcd", {"pod": _name(pod)})

    def _turn(self, cached: CachedPod, pod: Object, node: Object) -> Turn:
        now = self._clock.now()
        if not is_begun(pod) and not is_terminal(pod) and not is_doomed(pod):
            premises = self._premises(cached, node)
            if why := self._refusal(cached, pod, premises):
                return Turn(rejected_status(pod, why, timestamp(now)), None)
            if is_critical(pod) and (
                lacking := {short.name: short.missing for short in shortages(cached.info.request, premises)}
            ):
                return self._wait_for_room(cached, pod, lacking, now)
            cached.is_active = True
        setting = Setting(
            now=now,
            host_ips=host_addresses(node),
            pod_ips=self._pod_ips(pod, node, now),
            job_seconds=self._config.pods.job_run_seconds,
            order=cached.kill_request,
        )
        first = turn(pod, setting)
        if is_begun(pod) or first.next_at is None or self._queue.depth < _AT_ONCE:
            return first
        # As kubelet: while others wait, a status that is overtaken already is not sent.
        return self._turn(cached, {**pod, "status": first.status}, node)

    def _premises(self, cached: CachedPod, node: Object) -> Premises:
        return Premises(
            node=node,
            others=self.store.requests(but=cached),
            pressure=self._observer.pressure,
            problems=self._readiness.problems,
            allowed_sysctls=self._config.pods.allowed_sysctls,
        )

    def _refusal(self, cached: CachedPod, pod: Object, premises: Premises) -> Refusal | None:
        return REFUSED if self._config.pods.mode == "refuse" else refusal(pod, cached.info.request, premises)

    def _wait_for_room(self, cached: CachedPod, pod: Object, lacking: Missing, now: datetime) -> Turn:
        """Have others end for a critical pod, unless that would not help."""
        left = unmet(lacking, self.store.terminating())
        others = [other for other in self.store.running() if is_preemptable(other, by=cached.info)] if left else []
        if short := unmet(left, others):
            return Turn(rejected_status(pod, no_room(short), timestamp(now)), None)
        for other in victims(others, left):
            fields = {"pod": other.full_name, "requestingPod": cached.info.full_name}
            log.log(V2, "Preempting pod to free up resources", fields)
            self.kill(other.uid, making_room(other, now))
        return Turn(pod.get("status", {}), now + timedelta(seconds=_ROOM_SECONDS))

    def _pod_ips(self, pod: Object, node: Object, now: datetime) -> tuple[str, ...] | None:
        """The pod's addresses; none where the cluster gives out no ranges, None where it may still do so."""
        if on_host_network(pod) or not is_begun(pod) or is_terminal(pod):
            return ()
        ranges = pod_ranges(node)
        waited = now - moment(pod["status"]["startTime"])
        if not ranges and abs(waited.total_seconds()) < _NO_RANGE_SECONDS:
            self._queue.add_after(uid_of(pod), _NO_NODE_SECONDS)
            return None
        try:
            return self.store.addresses.addresses(uid_of(pod), ranges)
        except Exhausted as error:
            told = f"Failed to create pod sandbox: failed to allocate for range 0: {error}"
            self._tell(pod, PodEvent("FailedCreatePodSandBox", told, "Warning"))
            self._queue.add_after(uid_of(pod), _AGAIN_SECONDS)
            return None

    def _tell(self, pod: Object, *events: PodEvent) -> None:
        for event in events:
            self._events.record(event, reference(pod, event.path))

    def _forget(self, uid: str) -> None:
        cached = self.store.remove(uid)
        self._queue.discard(uid)
        self._unkept.pop(uid, None)
        if cached:
            with self._isolation.attempt(uid, podUID=uid):
                last = cached.decode()
                ends = removal_events(last)
                self._tell(last, *ends)
                cached.is_removal_reported = bool(ends)
        self._isolation.forget(uid)
        self._events.forget(uid)


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
