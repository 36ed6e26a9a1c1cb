"""The taint-eviction controller: deletes the pods that do not tolerate a NoExecute taint of their node."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from agent.core.pods.accessors import is_terminal, is_terminating
from agent.core.pods.admission import tolerates
from agent.minicluster.controller_manager import record_event
from agent.minicluster.node_strategy import NODES
from agent.minicluster.object_store import FIRST_RESOURCE_VERSION
from agent.minicluster.pod_strategy import PODS, with_condition

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agent.core.model import NodeTaint, Object, PodObject
    from agent.minicluster.object_store import ObjectChange
    from agent.minicluster.registry import GenericRegistry

_COMPONENT = "taint-eviction-controller"
_DISRUPTION: Object = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class TaintEviction:
    """Evicts pods at once; one that tolerates the taint for some seconds stays, however long the taint does."""

    def __init__(self, registry: GenericRegistry, *, now: Callable[[], datetime]) -> None:
        self._registry = registry
        self._now = now

    async def follow_nodes(self) -> None:
        """Evict when a node has changed, forever; cancellation is the only way out."""
        await self._follow(NODES.key, self.sync_node)

    async def follow_pods(self) -> None:
        """Evict when a pod has changed, forever; cancellation is the only way out."""
        await self._follow(PODS.key, self.sync_pod)

    async def _follow(self, resource: str, sync: Callable[[ObjectChange], None]) -> None:
        store, seen = self._registry.store, FIRST_RESOURCE_VERSION
        while True:
            await store.changed(resource, seen)
            for change in store.changes(resource, seen):
                seen = change.version
                sync(change)

    def sync_node(self, change: ObjectChange) -> None:
        """Evict the pods of a node that does not want them any more."""
        if change.new is None or not _evicting_taints(change.new):
            return
        for pod in self._registry.store.list(PODS.key):
            if pod["spec"].get("nodeName") == change.new["metadata"]["name"]:
                self._evict_unless_tolerated(pod, change.new)

    def sync_pod(self, change: ObjectChange) -> None:
        """Evict a pod that came to a node that does not want it."""
        if change.new is None or not change.new["spec"].get("nodeName"):
            return
        metadata = change.new["metadata"]
        node = self._registry.store.get(NODES.key, change.new["spec"]["nodeName"])
        pod = self._registry.store.get(PODS.key, metadata["name"], metadata["namespace"])
        if node is not None and pod is not None and pod["metadata"]["uid"] == metadata["uid"]:
            self._evict_unless_tolerated(pod, node)

    def _evict_unless_tolerated(self, pod: Object, node: Object) -> None:
        typed, tolerations = cast("PodObject", pod), pod["spec"].get("tolerations") or ()
        is_tolerated = all(tolerates(tolerations, taint) for taint in _evicting_taints(node))
        if is_tolerated or is_terminating(typed) or is_terminal(typed):
            return
        metadata = pod["metadata"]
        about = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "namespace": metadata["namespace"]}
        message = f"Marking for deletion Pod {metadata['namespace']}/{metadata['name']}"
        record_event(self._registry, about, "TaintManagerEviction", message, self._now(), component=_COMPONENT)
        self._registry.store.put(PODS.key, with_condition(pod, _DISRUPTION, self._now()))
        self._registry.delete(PODS, metadata["namespace"], metadata["name"])


def _evicting_taints(node: Object) -> list[NodeTaint]:
    return [taint for taint in node["spec"].get("taints") or [] if taint["effect"] == "NoExecute"]
