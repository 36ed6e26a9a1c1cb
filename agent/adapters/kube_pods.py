"""Pods in the Kubernetes API: PodApi and WatchApi for the pods of one node."""

import logging
from typing import Any

from agent.adapters.api_connection import ApiConnection
from agent.adapters.kube import STRATEGIC_MERGE, KubeSelection, checked, without_managed_fields
from agent.adapters.pod_shapes import PodShape
from agent.adapters.shapes import metadata
from agent.core.model import Object
from agent.ports import Change, Listed, Unavailable

log = logging.getLogger(__name__)

_PAGE = 100  # pods that are in memory as whole objects at a time
# A bound for the memory of all pods of a node, about in bytes: 100 pods of 1 MB, or some 10,000 of usual size.
_MOST_WEIGHT = 128 * 2**20
_POD_WEIGHT, _FIELD_WEIGHT = 4096, 64
_MOST_REPORTED = 1000


class KubePods:
    """PodApi on a connection to the API server."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def create(self, pod: Any) -> Any:
        """Create a mirror pod."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        answer = await self._connection.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        return _checked(answer, namespace, name)

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Any:
        """Apply a strategic-merge patch through the status subresource."""
        answer = await self._connection.call("PATCH", f"{_path(namespace, name)}/status", patch, STRATEGIC_MERGE)
        return _checked(answer, namespace, name)

    async def delete(self, namespace: str, name: str, uid: str) -> None:
        """Delete a terminated pod without a grace period, unless another pod has its name by now."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        await self._connection.call("DELETE", _path(namespace, name), options)


class PodSelection(KubeSelection):
    """Lists and watches pods; a pod that does not have the shape of one is logged once and skipped."""

    def __init__(self, connection: ApiConnection, node_name: str = "") -> None:
        selector = f"spec.nodeName={node_name}" if node_name else ""
        super().__init__(connection, "/api/v1/pods", field_selector=selector, shape=PodShape, page=_PAGE)
        self._reported: set[str] = set()  # the UIDs of skipped pods that were logged
        self._weights: dict[str, int] = {}  # of the pods that were not skipped, by UID
        self._weight = 0  # of all of them

    async def list(self) -> Listed:
        """List all pods that are not skipped."""
        self._weights.clear()
        self._weight = 0
        if len(self._reported) >= _MOST_REPORTED:
            self._reported.clear()
        return await super().list()

    def _read(self, kind: str, content: bytes) -> Change | None:
        """Return the change of a pod. A pod that is skipped becomes a BOOKMARK, so that the watch goes on after it."""
        if kind == "DELETED":
            return self._without_body(kind, content)
        try:
            pod = self._decoded(content)
            self._make_room(pod["metadata"]["uid"], content)
        except Unavailable as error:
            return self._without_body("BOOKMARK", content, skipped=error)
        self._reported.discard(pod["metadata"]["uid"])
        return Change(kind, pod)

    def _without_body(self, kind: str, content: bytes, *, skipped: Unavailable | None = None) -> Change | None:
        """Read only the metadata of a deleted or a skipped pod; None where not even these make sense."""
        try:
            fields = metadata(content)
        except Unavailable as error:
            self._report("", "", error)
            return None
        if skipped:
            self._report(fields["uid"], fields["name"], skipped)
        else:
            self._weight -= self._weights.pop(fields["uid"], 0)
        return Change(kind, {"metadata": fields})

    def _make_room(self, uid: str, content: bytes) -> None:
        """Count the pod's weight; raise Unavailable where all pods together would be too heavy."""
        weight = _POD_WEIGHT + len(content) + _FIELD_WEIGHT * (content.count(b":") + content.count(b","))
        total = self._weight - self._weights.get(uid, 0) + weight
        if total > _MOST_WEIGHT:
            raise Unavailable("there is no room for it beside the other pods of this node")
        self._weights[uid], self._weight = weight, total

    def _report(self, uid: str, name: str, error: Unavailable) -> None:
        if uid in self._reported or len(self._reported) >= _MOST_REPORTED:
            return
        self._reported.add(uid)
        log.error("Pod makes no sense and is left alone", {"err": error, "pod": name})


def pods_of(connection: ApiConnection, node_name: str) -> PodSelection:
    """Return the selection of the pods that are bound to a node, all that the node may read."""
    return PodSelection(connection, node_name)


def _checked(answer: Object, namespace: str, name: str) -> Object:
    """Return the answer about a pod, or raise Unavailable where it does not make sense."""
    source = f"the answer about {_path(namespace, name)}"
    return without_managed_fields(checked(answer, PodShape, name=name, source=source))


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
