"""The scheduler: binds pending pods to nodes, one at a time, as kube-scheduler does without preemption."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from agent.core.pods.accessors import is_terminal, is_terminating, priority
from agent.core.pods.resources import request_of
from agent.core.times import micro_timestamp
from agent.minicluster.event_strategy import EVENTS
from agent.minicluster.node_strategy import NODES
from agent.minicluster.object_store import FIRST_RESOURCE_VERSION
from agent.minicluster.pod_strategy import DEFAULT_SCHEDULER, PODS, bind, find_condition, with_condition
from agent.minicluster.scheduling import NodeInfo, best_node
from agent.minicluster.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from agent.core.model import NodeObject, Object, PodObject
    from agent.core.pods.resources import PodRequest
    from agent.minicluster.object_store import ObjectChange
    from agent.minicluster.registry import GenericRegistry

Requests = defaultdict[str, "list[PodRequest]"]
"""What the pods of each node request, by the node's name."""


class Scheduler:
    """Binds each pending pod to the node that suits it best, or says in its status why there is none.

    Pods of a higher priority come first, then older ones. No pod is evicted to make room for another.
    """

    def __init__(self, registry: GenericRegistry, *, now: Callable[[], datetime]) -> None:
        self._registry = registry
        self._now = now
        self._pending: set[tuple[str, str]] = set()  # namespaces and names

    async def follow_pods(self) -> None:
        """Schedule when a pod has changed, forever; cancellation is the only way out."""
        await self._follow(PODS.key, self.observe_pod)

    async def follow_nodes(self) -> None:
        """Schedule when a node has changed, forever; cancellation is the only way out."""
        await self._follow(NODES.key, lambda _: None)

    async def _follow(self, resource: str, observe: Callable[[ObjectChange], None]) -> None:
        store, seen = self._registry.store, FIRST_RESOURCE_VERSION
        while True:
            await store.changed(resource, seen)
            for change in store.changes(resource, seen):
                seen = change.version
                observe(change)
            self.sync()

    def observe_pod(self, change: ObjectChange) -> None:
        """Remember a pod that needs a node, and forget one that does not."""
        pod = change.new or change.old
        if pod is None:
            return
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if change.new is not None and _needs_node(change.new):
            self._pending.add(key)
        else:
            self._pending.discard(key)

    def sync(self) -> None:
        """Try to schedule every pending pod once."""
        if not self._pending:
            return
        found = (self._registry.store.get(PODS.key, name, namespace) for namespace, name in sorted(self._pending))
        pods = [pod for pod in found if pod is not None and _needs_node(pod)]
        requests = self._requests()
        for pod in sorted(pods, key=_queue_position):
            self._schedule(pod, requests)

    def _requests(self) -> Requests:
        requests: Requests = defaultdict(list)
        for pod in self._registry.store.list(PODS.key):
            node_name = pod["spec"].get("nodeName")
            if node_name and not is_terminal(_typed(pod)):
                requests[node_name].append(request_of(_typed(pod)))
        return requests

    def _schedule(self, pod: Object, requests: Requests) -> None:
        """Bind the pod, or report why no node can take it."""
        request = request_of(_typed(pod))
        try:
            node_name, message = best_node(_typed(pod), request, list(self._nodes(requests)))
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # an API server would not have accepted it
            self._report_failure(pod, "SchedulerError", f"{type(error).__name__}: {error}")
            return
        if not node_name:
            self._report_failure(pod, "Unschedulable", message)
            return
        requests[node_name].append(request)
        metadata = pod["metadata"]
        binding = {"metadata": {"name": metadata["name"], "uid": metadata["uid"]}, "target": {"name": node_name}}
        bind(self._registry.store, metadata["namespace"], binding, self._now())
        assigned = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node_name}"
        self._record(pod, {"type": "Normal", "reason": "Scheduled", "action": "Binding", "message": assigned})

    def _nodes(self, requests: Requests) -> Iterator[NodeInfo]:
        for node in self._registry.store.list(NODES.key):
            yield NodeInfo(cast("NodeObject", node), requests[node["metadata"]["name"]])

    def _report_failure(self, pod: Object, reason: str, message: str) -> None:
        """Set the condition of a pod, and record an event; a reason that the pod shows already is not repeated."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "observedGeneration": pod["metadata"]["generation"],
            "reason": reason,
            "message": message,
        }
        if condition.items() <= (find_condition(pod, "PodScheduled") or {}).items():
            return
        self._registry.store.put(PODS.key, with_condition(pod, condition, self._now()))
        event = {"type": "Warning", "reason": "FailedScheduling", "action": "Scheduling", "message": message}
        self._record(pod, event)

    def _record(self, pod: Object, event: Object) -> None:
        metadata, now = pod["metadata"], self._now()
        about = {field: metadata[field] for field in ("namespace", "name", "uid", "resourceVersion")}
        head = {
            "metadata": {"name": f"{metadata['name']}.{int(now.timestamp() * 1e9):x}"},
            "involvedObject": {"kind": "Pod", "apiVersion": "v1"} | about,
            "eventTime": micro_timestamp(now),
            "reportingComponent": DEFAULT_SCHEDULER,
            "reportingInstance": DEFAULT_SCHEDULER,
        }
        with suppress(StatusError):  # its namespace is being deleted
            self._registry.create(EVENTS, metadata["namespace"], head | event)


def _needs_node(pod: Object) -> bool:
    spec = pod["spec"]
    is_waiting = not spec.get("nodeName") and not spec.get("schedulingGates") and not is_terminal(_typed(pod))
    return is_waiting and spec["schedulerName"] == DEFAULT_SCHEDULER and not is_terminating(_typed(pod))


def _queue_position(pod: Object) -> tuple[int, str, int]:
    metadata = pod["metadata"]
    return -priority(_typed(pod)), metadata["creationTimestamp"], int(metadata["resourceVersion"])


def _typed(pod: Object) -> PodObject:
    return cast("PodObject", pod)
