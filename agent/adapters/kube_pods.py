"""The pods of a node behind our ports."""

from agent.adapters.kube import STRATEGIC_MERGE, KubeSelection, known
from agent.adapters.lane import Lane
from agent.adapters.pod_shapes import PodShape
from agent.core.model import Object

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


def pods_of(lane: Lane, node_name: str) -> KubeSelection:
    """The pods that are bound to a node: all that a node may see."""
    return KubeSelection(lane, "/api/v1/pods", field_selector=f"spec.nodeName={node_name}", shape=PodShape, page=_PAGE)


def _path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
