"""Keep the status of the node's pods as a kubelet does, without running any container."""

import logging
from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import NamedTuple

from agent.controllers.pod_store import CachedPod, PodStore, uid_of
from agent.controllers.state import NodeState
from agent.controllers.static_pods import StaticPodController
from agent.core.model import NodeObject, Object, PodObject, PodStatus
from agent.core.patch import status_patch
from agent.core.pods.accessors import is_admitted, is_mirror, is_terminal, is_terminating, on_host_network
from agent.core.pods.admission import (
    ADMITTED,
    ALL_REJECTED,
    NODE_AFFINITY,
    Admission,
    AdmissionContext,
    kill_for_preemption,
    preempt,
    rejected_status,
    rejection,
    shortages,
)
from agent.core.pods.annotations import invalid_annotations
from agent.core.pods.events import PodEvent, pod_events, pod_reference, removal_events
from agent.core.pods.ip_allocator import Exhausted, host_addresses, pod_ranges
from agent.core.pods.lifecycle import NextStatus, next_status
from agent.core.pods.status import PodContext
from agent.core.pods.termination import KillRequest
from agent.core.times import parse_time, timestamp
from agent.klog import V2
from agent.machinery.dependencies import Dependencies
from agent.machinery.health import LoopHealth
from agent.machinery.runner import Workers
from agent.machinery.workqueue import WorkQueue
from agent.ports import ApiError, NodeApi, NotFound, PodApi, Recorder

log = logging.getLogger(__name__)

_CROWD = 8  # pods that wait for a worker
_MOST_REPORTED = 10  # annotations of one pod
_RETRY_SECONDS = 10.0  # as kubelet's status manager: the next pass retries what has failed
_NO_NODE_SECONDS = 1.0
_PREEMPTION_SECONDS = 0.2  # between two checks whether the preempted pods have ended
_NO_RANGE_SECONDS = 10.0  # a cluster that assigns pod CIDRs has done so by then


class PodController:
    """Keeps the status of one node's pods up to date; a reflector calls `reset`, `put` and `remove`."""

    def __init__(
        self,
        state: NodeState,
        api: PodApi,
        *,
        nodes: NodeApi,
        events: Recorder,
        queue: "PodQueue",
        dependencies: Dependencies,
        health: LoopHealth,
    ) -> None:
        self._state = state
        self._settings = state.config.pods
        self._api = api
        self._nodes = nodes
        self._events = events
        self._queue = queue
        self._clock = dependencies.clock
        self._static: StaticPodController | None = None
        self._is_stopped = False
        self.store = PodStore(usage_rules=self._settings.usage)
        self._unstored: dict[str, PodObject] = {}  # pods for which PodStore.upsert raised an error, by UID
        self._isolation = dependencies.unexpected.isolation(
            "pods", health, size=lambda: self.store.size + len(self._unstored)
        )

    def stop(self) -> None:
        """Sync no pod any more."""
        self._is_stopped = True

    def follow(self, static_pods: StaticPodController) -> None:
        """Keep the mirror pods of these static pods; without them, every mirror pod is deleted."""
        self._static = static_pods

    def reset(self, objects: Sequence[PodObject], version: str) -> None:
        """Replace all pods by those of a list; the oldest come first, as a kubelet admits them."""
        for uid in self.store.stale(objects):
            self._forget(uid)
        self._unstored.clear()
        for pod in sorted(objects, key=lambda pod: str(pod["metadata"].get("creationTimestamp"))):
            self.put(pod)

    def put(self, pod: PodObject) -> None:
        """Store a pod as the API has it and queue it; an older state than the stored one is ignored."""
        uid = uid_of(pod)
        try:
            is_new = self.store.upsert(pod)
        except Exception:  # the worker that syncs the pod gets the same error, reports it and retries
            self._unstored[uid], is_new = pod, True
        else:
            self._unstored.pop(uid, None)
        if is_new:  # a pod that fails all the time is not synced at once after each of its changes
            self._add_after(uid, min(self._isolation.pause_seconds(uid), _RETRY_SECONDS))

    def remove(self, pod: PodObject) -> None:
        """Remove a pod that is gone from the API, whether or not its containers had ended."""
        self._removed(uid_of(pod), is_mirror=is_mirror(pod))

    def kill(self, uid: str, order: KillRequest) -> None:
        """Have the node end a pod; a second request for the same pod is ignored."""
        if cached := self.store.get(uid):
            cached.kill_request = cached.kill_request or order
            self._add_after(uid, 0.0)

    def _full_name(self, uid: str) -> str:
        if cached := self.store.get(uid):
            return cached.info.full_name
        metadata = self._unstored[uid]["metadata"] if uid in self._unstored else None
        return f"{metadata['namespace']}/{metadata['name']}" if metadata else ""

    async def sync(self, uid: str) -> float:
        """Bring one pod up to date. Returns the seconds until it is due again if nothing else queues it earlier."""
        if self._is_stopped:
            return inf
        with self._isolation.attempt(uid, pod=self._full_name(uid), podUID=uid) as attempt:
            await self._sync(uid)
        if attempt.retry_seconds is None:
            return inf
        if self.store.get(uid) or uid in self._unstored:
            return attempt.retry_seconds
        self._isolation.forget(uid)
        return inf

    async def _sync(self, uid: str) -> None:
        if pod := self._unstored.get(uid):
            self.store.upsert(pod)
            del self._unstored[uid]
        cached = self.store.get(uid)
        if cached is None:
            return
        try:
            if cached.info.is_mirror:
                await self._sync_mirror(uid, cached)
            else:
                await self._sync_pod(uid, cached)
        except NotFound:
            log.log(V2, "Pod does not exist on the server", {"pod": cached.info.full_name, "podUID": uid})
            self._removed(uid, is_mirror=cached.info.is_mirror)  # the watch will report it, too
        except ApiError as error:
            log.error("Failed to update status for pod", {"err": error, "pod": cached.info.full_name})
            self._add_after(uid, _RETRY_SECONDS)

    async def _sync_mirror(self, uid: str, cached: CachedPod) -> None:
        """Sync a mirror pod while its static pod exists unchanged; otherwise delete it at once."""
        is_wanted = self._static.wants(cached.info.mirror_hash or "") if self._static else False
        if is_wanted is None:
            self._add_after(uid, _NO_NODE_SECONDS)
        elif is_wanted and not cached.info.is_terminating:
            await self._sync_pod(uid, cached)
            self._add_after(uid, self._settings.manifest_check_seconds)  # the file may change
        else:
            await self._delete(cached, cached.decode())

    async def _sync_pod(self, uid: str, cached: CachedPod) -> None:
        """Send one status after the other until the API has the latest, then delete a pod that has terminated."""
        sent = None
        while True:
            node, pod = self._state.node(), cached.decode()
            if node is None:
                self._add_after(uid, _NO_NODE_SECONDS)
                return
            self._report_annotations(cached, pod)
            following = await self._advance(cached, pod, node)
            if following is None:
                return
            patch = status_patch(pod, following.status)
            if patch is None or patch == sent:
                break
            answer = await self._send(cached, pod, following.status, patch)
            if answer is None:
                return
            is_as_sent, pod, sent = _is_as_sent(answer, pod, following.status), answer, patch
            if is_as_sent and (following.next_at is None or following.next_at > self._clock.now()):
                break
        if following.next_at is not None:
            self._add_after(uid, max(0.0, (following.next_at - self._clock.now()).total_seconds()))
        if is_terminating(pod) and is_terminal(pod):
            await self._delete(cached, pod)

    async def _advance(self, cached: CachedPod, pod: PodObject, node: NodeObject) -> NextStatus | None:
        """Admit a new pod, and return the next status of an admitted or refused one.

        Returns None for a critical pod that waits: the pods that it preempts are killed, and it is queued again.
        Nothing is awaited between the decision and `is_active`: pods that come together must not share resources.
        """
        if is_admitted(pod) or is_terminal(pod) or is_terminating(pod):
            return self._next_status(cached, pod, node)
        admission = self._admission(cached, pod, node)
        if admission.rejection and admission.rejection.reason == NODE_AFFINITY:
            node = await self._fresh_node(node)
            admission = self._admission(cached, pod, node)
        now = self._clock.now()
        if admission.rejection:
            return NextStatus(rejected_status(pod, admission.rejection, timestamp(now)), None)
        if admission.is_waiting:
            for victim in admission.victims:
                fields = {"pod": victim.full_name, "requestingPod": cached.info.full_name}
                log.log(V2, "Preempting pod to free up resources", fields)
                self.kill(victim.uid, kill_for_preemption(victim, now))
            self._add_after(uid_of(pod), _PREEMPTION_SECONDS)
            return None
        cached.is_active = True
        return self._next_status(cached, pod, node)

    def _admission(self, cached: CachedPod, pod: PodObject, node: NodeObject) -> Admission:
        """Decide whether the node admits a pod; this changes nothing."""
        if self._settings.mode == "refuse":
            return Admission(rejection=ALL_REJECTED)
        context = AdmissionContext(
            node=node,
            others=self.store.requests(but=cached),
            pressure=self._state.pressure.conditions,
            problems=self._state.problems,
            allowed_sysctls=self._settings.allowed_sysctls,
        )
        info = cached.info
        if why := rejection(pod, info.request, context):
            return Admission(rejection=why)
        missing = {short.name: short.missing for short in shortages(info.request, context)} if info.is_critical else {}
        if missing:
            return preempt(info, missing, running=self.store.running(), terminating=self.store.terminating())
        return ADMITTED

    async def _fresh_node(self, node: NodeObject) -> NodeObject:
        """Read the Node, as kubelet does before it refuses a pod because of labels that may be outdated."""
        try:
            self._state.put(await self._nodes.get(self._state.name))
        except ApiError as error:
            log.error("Failed to synchronously fetch node info", {"err": error})
        return self._state.node() or node

    def _next_status(self, cached: CachedPod, pod: PodObject, node: NodeObject) -> NextStatus:
        """Return the next status, and allocate the pod's addresses on the way."""
        now = self._clock.now()
        if not is_admitted(pod) and not is_terminal(pod) and is_crowded(self._queue):
            # As kubelet: while other pods wait, the status of a new pod that is outdated already is not sent.
            pod = {**pod, "status": {**pod.get("status", {}), "startTime": timestamp(now)}}
        context = PodContext(
            now=now,
            host_ips=host_addresses(node),
            pod_ips=self._allocate_ips(pod, node, now),
            job_seconds=self._settings.job_run_seconds,
            understands_commands=self._settings.commands == "understand",
            kill_request=cached.kill_request,
        )
        return next_status(pod, context)

    def _allocate_ips(self, pod: PodObject, node: NodeObject, now: datetime) -> tuple[str, ...] | None:
        """Give an admitted pod its addresses, which it keeps; () means that it has none.

        None means that the pod waits for addresses: it is queued again, and an event reports an exhausted range.
        """
        if on_host_network(pod) or not is_admitted(pod) or is_terminal(pod):
            return ()
        ranges = pod_ranges(node)
        waited = now - parse_time(pod["status"]["startTime"])
        if not ranges and abs(waited.total_seconds()) < _NO_RANGE_SECONDS:
            self._add_after(uid_of(pod), _NO_NODE_SECONDS)
            return None
        try:
            return self.store.addresses.addresses(uid_of(pod), ranges)
        except Exhausted as error:
            message = f"Failed to create pod sandbox: failed to allocate for range 0: {error}"
            self._record(pod, PodEvent("FailedCreatePodSandBox", message, "Warning"))
            self._add_after(uid_of(pod), _RETRY_SECONDS)
            return None

    async def _send(self, cached: CachedPod, pod: PodObject, status: PodStatus, patch: Object) -> PodObject | None:
        """Send a status, record its events and return the answer; None where the pod was removed before that came."""
        answer = await self._api.patch_status(pod["metadata"]["namespace"], pod["metadata"]["name"], patch)
        if not cached.is_removal_reported:
            self._record(pod, *pod_events(pod, status))
        if self.store.get(uid_of(pod)) is not cached:
            self._events.forget(uid_of(pod))
            return None
        self.store.upsert(answer)
        return answer

    def _report_annotations(self, cached: CachedPod, pod: PodObject) -> None:
        """Record an event about each annotation that says nothing, once for each value."""
        for annotation in invalid_annotations(pod):
            if annotation not in cached.reported and len(cached.reported) < _MOST_REPORTED:
                cached.reported |= {annotation}
                self._record(pod, annotation.event)

    async def _delete(self, cached: CachedPod, pod: PodObject) -> None:
        """Delete a terminated pod from the API, once: a pod with finalizers stays until others remove them."""
        metadata = pod["metadata"]
        if not cached.is_deleted and metadata.get("deletionGracePeriodSeconds") != 0:
            await self._api.delete(metadata["namespace"], metadata["name"], metadata["uid"])
            cached.is_deleted = True
            log.log(V2, "Pod fully terminated and removed from etcd", {"pod": cached.info.full_name})

    def _removed(self, uid: str, *, is_mirror: bool) -> None:
        self._forget(uid)
        if self._static and is_mirror:
            self._static.on_mirror_removed()

    def _forget(self, uid: str) -> None:
        """Drop everything about a pod; events report the containers that were running."""
        cached = self.store.remove(uid)
        self._queue.discard(PodKey(self, uid))
        self._unstored.pop(uid, None)
        if cached:
            with self._isolation.attempt(uid, podUID=uid):
                pod = cached.decode()
                events = removal_events(pod)
                self._record(pod, *events)
                cached.is_removal_reported = bool(events)
        self._isolation.forget(uid)
        self._events.forget(uid)

    def _add_after(self, uid: str, seconds: float) -> None:
        self._queue.add_after(PodKey(self, uid), seconds)

    def _record(self, pod: PodObject, *events: PodEvent) -> None:
        for event in events:
            self._events.record(event, pod_reference(pod, event.path))


def _is_as_sent(answer: PodObject, pod: PodObject, status: PodStatus) -> bool:
    """Return whether an answer shows the pod with the status that was sent: nobody else has changed anything."""
    metadata = {**answer["metadata"], "resourceVersion": pod["metadata"]["resourceVersion"]}
    is_same = metadata == pod["metadata"] and answer["spec"] == pod["spec"]
    return is_same and (answer.get("status") == status or status_patch(answer, status) is None)


class PodKey(NamedTuple):
    """A pod in the queue that all nodes of a process share."""

    controller: PodController
    uid: str


PodQueue = WorkQueue[PodKey]


def is_crowded(queue: PodQueue) -> bool:
    """Return whether many pods wait for a worker: what is not urgent waits until they have their status."""
    return queue.has_due(_CROWD)


class PodWorkers(Workers[PodKey]):
    """Sync the pods that are due."""

    async def sync(self, key: PodKey) -> float:
        """Sync one."""
        return await key.controller.sync(key.uid)
