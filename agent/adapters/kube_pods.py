"""The pods of a node behind our ports."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent.adapters.kube import STRATEGIC_MERGE, KubeSelection, known
from agent.adapters.lane import Lane
from agent.adapters.pod_shapes import PodShape
from agent.adapters.shapes import misfit
from agent.core.model import Object
from agent.ports import Change, Listed, WatchApi

log = logging.getLogger(__name__)

_PAGE = 100  # of all pods of a node only so many are in memory with everything that they have


class KubePods:
    """Pods, as PodApi wants them."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def create(self, pod: Object) -> Object:
        """Create a mirror pod."""
        path = _path(pod["metadata"]["namespace"], pod["metadata"]["name"])
        return known(await self._lane.call("POST", path.rpartition("/")[0], pod), path, PodShape)

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        """Apply a strategic-merge patch through the status subresource."""
        path = _path(namespace, name)
        return known(await self._lane.call("PATCH", f"{path}/status", patch, STRATEGIC_MERGE), path, PodShape)

    async def delete(self, namespace: str, name: str, uid: str) -> None:
        """Remove a pod that has ended, at once, if it still is this one."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        await self._lane.call("DELETE", _path(namespace, name), options)


class PodSelection:
    """Pods, listed and watched, as WatchApi wants them; one that makes no sense is told of once and left out."""

    def __init__(self, objects: WatchApi) -> None:
        self._objects = objects
        self._odd: set[str] = set()  # the UIDs of those that were told of

    async def list(self) -> Listed:
        """All that make sense now."""
        pods, version = await self._objects.list()
        self._odd &= {pod["metadata"]["uid"] for pod in pods}
        return Listed([pod for pod in pods if self._fits(pod)], version)

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        """What happens to them; of one that makes no sense only that time went on."""
        async with aclosing(self._objects.watch(version, seconds=seconds)) as changes:
            async for kind, pod in changes:
                is_odd = kind in {"ADDED", "MODIFIED"} and not self._fits(pod)
                yield Change("BOOKMARK" if is_odd else kind, pod)

    def _fits(self, pod: Object) -> bool:
        uid, fault = pod["metadata"]["uid"], misfit(pod, PodShape)
        if fault is None:
            self._odd.discard(uid)
        elif uid not in self._odd:
            self._odd.add(uid)
            log.error("Pod makes no sense and is left alone", {"err": fault, "pod": pod["metadata"]["name"]})
        return fault is None


def pods_of(lane: Lane, node_name: str) -> PodSelection:
    """The pods that are bound to a node: all that a node may see."""
    return PodSelection(KubeSelection(lane, "/api/v1/pods", field_selector=f"spec.nodeName={node_name}", page=_PAGE))


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
