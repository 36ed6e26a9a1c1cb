"""Everything that the daemon does with an answer of the API server, without a server: the door, and all behind it."""

import itertools
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any

from msgspec import json

from agent.adapters.answers import decoded, page, refusal, watch_event
from agent.adapters.certificates.csr_clients import CSRShape
from agent.adapters.kube import (
    KubeCSINodes,
    KubeEvents,
    KubeLeases,
    KubeNodes,
    KubePods,
    KubeReviews,
    KubeSelection,
    PodSelection,
)
from agent.controllers.pod_store import PodStore
from agent.core.access import access_review_spec, is_allowed, reviewed_user
from agent.core.container_log import LogOptions, LogUnavailable, run_log, selected
from agent.core.csr import Refused, issued, overdue, serving_template
from agent.core.events import Correlator, event_object, schedulable_events, start_events, status_events
from agent.core.lease import owned, renewed
from agent.core.model import Object
from agent.core.node import is_owned_by, new_node, reconcile_patch, with_own_metadata
from agent.core.node_view import condition_rows, resource_rows
from agent.core.nodestatus import desired_status, is_ready
from agent.core.patch import is_changed, node_patch, status_patch
from agent.core.pods.accessors import container_statuses, is_mirror
from agent.core.pods.admission import (
    AdmissionContext,
    is_preemptable,
    kill_for_preemption,
    rejected_status,
    rejection,
    shortages,
    still_missing,
    victims,
)
from agent.core.pods.events import pod_events, pod_reference, removal_events
from agent.core.pods.info import pod_info
from agent.core.pods.ip_allocator import Exhausted, IPAllocator, host_addresses, pod_ranges
from agent.core.pods.lifecycle import next_status
from agent.core.pods.resources import request_of
from agent.core.pods.stats import pod_stats
from agent.core.pods.status import PodContext
from agent.core.pods.termination import KillRequest
from agent.core.shutdown import GracePeriod, kill_for_shutdown, priority_groups
from agent.core.times import parse_time
from agent.ports import ApiError
from agent.process import Process
from tests.fakes import START, FakeClock, FakeHost, facts, host_snapshot, new_state
from tests.faults import objects
from tests.settings import NodeConfig

Reader = Callable[[bytes], Any]


class Told:
    """A connection on which the same bytes come back, whatever is asked."""

    def __init__(self) -> None:
        self.content = b""

    async def call(self, *_: Any, **__: Any) -> Object:
        return decoded(self.content)

    async def page(self, *_: Any) -> Any:
        return page(self.content), len(self.content)

    async def stream(self, *_: Any, **__: Any) -> Any:
        yield None
        yield watch_event(self.content)


class Door:
    """One reader for each kind of answer; whatever is let in is used as the loops use it.

    A reader returns whether the answer was let in. The only error that may come out of it is an ApiError.
    """

    def __init__(self) -> None:
        self.connection: Any = Told()
        self._config = NodeConfig(node_name=objects.NAME)
        self._own_node = json.encode(objects.NODE)
        self._store = PodStore()
        self._correlator = Correlator()
        self._turns = itertools.count()
        self._pods = PodSelection(self.connection, objects.NAME)

    def readers(self) -> dict[str, tuple[Any, Reader]]:
        """The kinds of answers, an example of each, and who reads them."""
        answers: dict[str, tuple[Any, Callable[[], Coroutine[Any, Any, Any]]]] = {
            "Node": (objects.NODE, self._node),
            "Node, listed": (objects.page(objects.NODE), self._listed_node),
            "Node, watched": (objects.event("MODIFIED", objects.NODE), self._watched_node),
            "Lease": (objects.LEASE, self._lease),
            "CSINode": (objects.CSINODE, self._csinode),
            "Event": (objects.EVENT, self._event),
            "Pod": (objects.POD, self._pod),
            "Pods, listed": (objects.page(objects.POD, objects.POD), self._listed_pods),
            "Pods, watched": (objects.event("ADDED", objects.POD), self._watched_pods),
            "Pods, deleted": (objects.event("DELETED", objects.POD), self._watched_pods),
            "Bookmark": (objects.event("BOOKMARK", {"metadata": {"resourceVersion": "5"}}), self._watched_pods),
            "Error, watched": (objects.event("ERROR", objects.STATUS), self._watched_pods),
            "CSR, watched": (objects.event("MODIFIED", objects.CSR), self._watched_csr),
            "TokenReview": (objects.TOKEN_REVIEW, self._token),
            "SubjectAccessReview": (objects.ACCESS_REVIEW, self._access),
            "Status": (objects.STATUS, self._status),
        }
        return {kind: (example, self._reader(answer)) for kind, (example, answer) in answers.items()}

    def _reader(self, answer: Callable[[], Coroutine[Any, Any, Any]]) -> Reader:
        def read(content: bytes) -> bool:
            self.connection.content = content
            try:
                _run(answer())
            except ApiError:
                return False
            return True

        return read

    async def _node(self) -> None:
        self._use_node(await KubeNodes(self.connection).get(objects.NAME))

    async def _listed_node(self) -> None:
        for node in (await KubeSelection.node(self.connection, objects.NAME).list()).objects[:1]:
            self._use_node(node)

    async def _watched_node(self) -> None:
        async for kind, node in KubeSelection.node(self.connection, objects.NAME).watch("1", seconds=1):
            if kind in {"ADDED", "MODIFIED"}:
                self._use_node(node)

    async def _lease(self) -> None:
        lease = await KubeLeases(self.connection).get(objects.NAME)
        is_owned_by(lease, "u")
        for now in (START, START + timedelta(days=36500)):
            _sent(renewed(owned(lease, objects.NAME, "u"), duration_seconds=40, now=now))
        again = renewed(renewed(lease, duration_seconds=40, now=START), duration_seconds=40, now=START)
        _sent(again)

    async def _csinode(self) -> None:
        is_owned_by(await KubeCSINodes(self.connection).get(objects.NAME), "u")

    async def _event(self) -> None:
        await KubeEvents(self.connection).create(objects.EVENT)

    async def _pod(self) -> None:
        self._use_pod(await KubePods(self.connection).create(objects.POD))

    async def _listed_pods(self) -> None:
        listed, _ = await self._pods.list()
        self._store.stale(listed)
        for pod in sorted(listed, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))[:3]:
            self._use_pod(pod)

    async def _watched_pods(self) -> None:
        async for kind, pod in self._pods.watch("1", seconds=1):
            if kind in {"ADDED", "MODIFIED"}:
                self._use_pod(pod)
            elif kind == "DELETED":
                self._store.remove(pod["metadata"]["uid"])
                is_mirror(pod)
            if kind != "OPENED":
                str(pod["metadata"]["resourceVersion"])

    async def _watched_csr(self) -> None:
        source = KubeSelection(self.connection, "/csr", field_selector="metadata.name=csr-1", shape=CSRShape)
        async for kind, request in source.watch("1", seconds=1):
            if kind in {"ADDED", "MODIFIED"}:
                with suppress(Refused):
                    issued(request, request["metadata"]["uid"])
                overdue(request, START)

    async def _token(self) -> None:
        status = await KubeReviews(self.connection).token("t")
        try:
            user = reviewed_user(status)
        except ValueError:
            return
        if user:
            _sent(access_review_spec(user, "get", "metrics", objects.NAME))

    async def _access(self) -> None:
        status = await KubeReviews(self.connection).access({})
        try:
            is_allowed(status)
        except ValueError:
            return

    async def _status(self) -> None:
        answer = decoded(self.connection.content)
        for code in (401, 409, 429, 500):
            str(refusal(code, answer, str(answer.get("message"))))

    def _use_node(self, node: Object) -> None:
        state = new_state(Process(FakeHost(), FakeClock(), sensor_seconds=1.0), self._config)
        for version in ("7", "9" * 5000):
            state.put({**node, "metadata": {**node["metadata"], "resourceVersion": version}})
            state.put(node)
        state.reset([node], "8")
        state.remove(node)
        known = facts(observed=node.get("status", {}), config=self._config)
        desired = desired_status(known)
        patch = node_patch(node, {**with_own_metadata(node, known), "status": desired.status})
        is_changed(patch)
        _sent(patch)
        _sent(reconcile_patch(node, new_node(facts(config=self._config))[0]))
        happened = [
            *status_events(objects.NAME, known.observed, desired.status),
            *start_events(objects.NAME, known.observed, host_snapshot()),
            *schedulable_events(
                objects.NAME, was_cordoned=False, is_cordoned=bool(node.get("spec", {}).get("unschedulable"))
            ),
        ]
        for number, event in enumerate(happened):
            self._correlator.correlate(event_object(objects.NAME, event, START, number), 5.0)
        is_ready(known.observed)
        ",".join(node.get("spec", {}).get("podCIDRs") or [])
        condition_rows(self._config, known.observed, {})
        resource_rows(known.observed)
        serving_template(objects.NAME, known.observed.get("addresses") or ())
        self._decide(json.decode(json.encode(objects.POD)), node)

    def _use_pod(self, pod: Object) -> None:
        if not self._store.upsert(pod):
            self._store.remove(pod["metadata"]["uid"])
            self._store.upsert(pod)
        cached = self._store.get(pod["metadata"]["uid"])
        assert cached
        assert cached.decode() == pod
        assert cached.info.is_mirror == is_mirror(pod)
        self._decide(pod, json.decode(self._own_node))
        for status in container_statuses(pod.get("status", {})):
            with suppress(LogUnavailable):
                run = run_log(pod, status["name"], previous=False, understands_commands=True)
                selected(run.until(START), LogOptions(timestamps=True, since=START))
        self._store.remove(pod["metadata"]["uid"])

    def _decide(self, pod: Object, node: Object) -> None:
        wanted = request_of(pod)
        context = AdmissionContext(node=node, others=(wanted,), pressure=frozenset({"MemoryPressure"}))
        calm = AdmissionContext(node=node, others=())
        whys = [why for each in (context, calm) if (why := rejection(pod, wanted, each))]
        lacking = {short.name: short.missing for short in shortages(wanted, context)}
        info, other = pod_info(pod), pod_info(json.decode(json.encode(objects.POD)))
        is_preemptable(info, by=other)
        victims([info, other], still_missing(lacking, [other]))
        priority_groups([info], [GracePeriod(0, 5), GracePeriod(10, 5)])
        statuses = [rejected_status(pod, why, "now") for why in whys]
        # One of the ways to end, at one of two times, and the life of a pod that need not end: each object its own.
        orders = (
            None,
            kill_for_preemption(info, START),
            kill_for_shutdown(info, 5, START),
            KillRequest("Evicted", "m", 1.0, START),
        )
        now = START + timedelta(days=3650) * (next(self._turns) % 2)
        statuses.append(self._turned(pod, node, now, orders[next(self._turns) // 2 % len(orders)]))
        statuses.append(self._turned(_without_deletion(pod), node, now, None))
        for number, status in enumerate(statuses):
            if (patch := status_patch(pod, status)) is not None:
                _sent(patch)
            for event in pod_events(pod, status)[:5]:
                made = event_object(objects.NAME, event, START, number, about=pod_reference(pod, event.path))
                self._correlator.correlate(made, 5.0)
        removal_events(pod)
        _sent(list(pod_stats([info], START)))

    def _turned(self, pod: Object, node: Object, now: Any, order: KillRequest | None) -> Object:
        allocator = IPAllocator()
        try:
            ips: tuple[str, ...] | None = allocator.addresses("u", pod_ranges(node))
        except Exhausted:
            ips = None
        if began := pod.get("status", {}).get("startTime"):
            (now - parse_time(began)).total_seconds()
        context = PodContext(now=now, host_ips=host_addresses(node), pod_ips=ips, job_seconds=1.0, kill_request=order)
        status, next_at = next_status(pod, context)
        if next_at is not None:
            (next_at - now).total_seconds()
        again, _ = next_status({**pod, "status": status}, context)
        return again


def _without_deletion(pod: Object) -> Object:
    return {**pod, "metadata": {key: pod["metadata"][key] for key in pod["metadata"] if key != "deletionTimestamp"}}


def _sent(body: Any) -> None:
    """A request's body: whatever is sent can be written as JSON, and in UTF-8."""
    json.encode(body).decode()


def _run(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run what never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("a reader waits")
