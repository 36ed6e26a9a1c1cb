"""The pods of a node behind our ports."""

import logging

from agent.adapters.kube import STRATEGIC_MERGE, KubeSelection, checked, without_managed_fields
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
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        answer = await self._lane.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        return _checked(answer, namespace, name)

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        """Apply a strategic-merge patch through the status subresource."""
        answer = await self._lane.call("PATCH", f"{_path(namespace, name)}/status", patch, STRATEGIC_MERGE)
        return _checked(answer, namespace, name)

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

    def _read(self, kind: str, content: bytes) -> Change | None:
        """Return the change of a pod. A pod that is skipped becomes a BOOKMARK, so that the watch goes on after it."""
        if kind == "DELETED":
            return self._deleted(content)
        try:
            pod = self._decoded(content)
            self._make_room(pod["metadata"]["uid"], content)
        except Unavailable as error:
            return self._skipped(content, error)
        self._odd.discard(pod["metadata"]["uid"])
        return Change(kind, pod)

    def _deleted(self, content: bytes) -> Change | None:
        """Read no more than the metadata: a pod that was skipped goes, too."""
        try:
            gone = metadata(content)
        except Unavailable as error:
            self._report("", "", error)
            return None
        self._weight -= self._weights.pop(gone["uid"], 0)
        return Change("DELETED", {"metadata": gone})

    def _skipped(self, content: bytes, reason: Unavailable) -> Change | None:
        try:
            odd = metadata(content)
        except Unavailable as error:
            self._report("", "", error)
            return None
        self._report(odd["uid"], odd["name"], reason)
        return Change("BOOKMARK", {"metadata": odd})

    def _make_room(self, uid: str, content: bytes) -> None:
        """There is none for a flood of pods, nor for more than some that are huge."""
        weight = _LEAST_WEIGHT + len(content) + _PART_WEIGHT * (content.count(b":") + content.count(b","))
        total = self._weight - self._weights.get(uid, 0) + weight
        if total > _MOST_WEIGHT:
            raise Unavailable("there is no room for it beside the other pods of this node")
        self._weights[uid], self._weight = weight, total

    def _report(self, uid: str, name: str, error: Unavailable) -> None:
        if uid in self._odd or len(self._odd) >= _MOST_TOLD:
            return
        self._odd.add(uid)
        log.error("Pod makes no sense and is left alone", {"err": error, "pod": name})


def pods_of(lane: Lane, node_name: str) -> PodSelection:
    """The pods that are bound to a node: all that a node may see."""
    return PodSelection(lane, node_name)


def _checked(answer: Object, namespace: str, name: str) -> Object:
    """Return the answer about a pod, or raise Unavailable where it does not make sense."""
    source = f"the answer about {_path(namespace, name)}"
    return without_managed_fields(checked(answer, PodShape, name=name, source=source))


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
