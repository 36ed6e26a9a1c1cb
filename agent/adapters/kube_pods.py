"""The pods of a node behind our ports."""

import logging

from agent.adapters.kube import STRATEGIC_MERGE, KubeSelection, known
from agent.adapters.lane import Lane
from agent.adapters.pod_shapes import PodShape
from agent.adapters.shapes import metadata
from agent.core.model import Object
from agent.ports import Change, Listed, Unavailable

log = logging.getLogger(__name__)

_PAGE = 100  # of all pods of a node only so many are in memory with everything that they have
# What the pods of a node may take, about in bytes: a hundred of a megabyte each, or some ten thousand usual ones.
_MOST_WEIGHT = 128 * 2**20
_LEAST_WEIGHT, _PART_WEIGHT = 4096, 64
_MOST_TOLD = 1000


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


class PodSelection(KubeSelection):
    """Pods, listed and watched, as WatchApi wants them; one that makes no sense is told of once and left out."""

    def __init__(self, lane: Lane, node_name: str) -> None:
        super().__init__(lane, "/api/v1/pods", field_selector=f"spec.nodeName={node_name}", shape=PodShape, page=_PAGE)
        self._odd: set[str] = set()  # the UIDs of those that were told of
        self._weights: dict[str, int] = {}  # of those that were let in, by their UIDs
        self._weight = 0  # of all of them

    async def list(self) -> Listed:
        """All that make sense now."""
        self._weights.clear()
        self._weight = 0
        if len(self._odd) >= _MOST_TOLD:
            self._odd.clear()
        return await super().list()

    def _admitted(self, kind: str, content: bytes) -> Change | None:
        """What happened to a pod; of one that makes no sense only that time went on."""
        try:
            known = metadata(content)
        except Unavailable as error:
            self._leave_out("", "", error)
            return None
        uid = known["uid"]
        if kind == "DELETED":
            self._weight -= self._weights.pop(uid, 0)
            return Change(kind, {"metadata": known})
        try:
            pod = self._fitting(content, PodShape)
            self._make_room(uid, content)
        except Unavailable as error:
            self._leave_out(uid, known["name"], error)
            return Change("BOOKMARK", {"metadata": known})
        self._odd.discard(uid)
        return Change(kind, pod)

    def _make_room(self, uid: str, content: bytes) -> None:
        """There is none for a flood of pods, nor for more than some that are huge."""
        weight = _LEAST_WEIGHT + len(content) + _PART_WEIGHT * (content.count(b":") + content.count(b","))
        total = self._weight - self._weights.get(uid, 0) + weight
        if total > _MOST_WEIGHT:
            raise Unavailable("there is no room for it beside the other pods of this node")
        self._weights[uid], self._weight = weight, total

    def _leave_out(self, uid: str, name: str, error: Unavailable) -> None:
        if uid in self._odd or len(self._odd) >= _MOST_TOLD:
            return
        self._odd.add(uid)
        log.error("Pod makes no sense and is left alone", {"err": error, "pod": name})


def pods_of(lane: Lane, node_name: str) -> PodSelection:
    """The pods that are bound to a node: all that a node may see."""
    return PodSelection(lane, node_name)


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
