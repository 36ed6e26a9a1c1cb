"""The Kubernetes API behind our ports: one class for each kind of object that a node has to do with."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent.adapters.answers import refusal
from agent.adapters.lane import Lane
from agent.adapters.shapes import LeaseShape, NodeShape, Stored, misfit
from agent.core import events, lease
from agent.core.model import Object
from agent.ports import Change, Listed, Unavailable

_STRATEGIC_MERGE = "application/strategic-merge-patch+json"
_NODES = "/api/v1/nodes"


class _Objects:
    """Objects of one kind: what the API server answers is checked before anybody else sees it."""

    path: str
    shape: type[Stored] = Stored

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def get(self, name: str) -> Object:
        """Read the object."""
        return self._known(name, await self._lane.call("GET", f"{self.path}/{name}"))

    async def create(self, obj: Object) -> Object:
        """Create the object."""
        return self._known(obj["metadata"]["name"], await self._lane.call("POST", self.path, obj))

    async def replace(self, obj: Object) -> Object:
        """Write the object if it is still the version it was read as."""
        name = obj["metadata"]["name"]
        return self._known(name, await self._lane.call("PUT", f"{self.path}/{name}", obj))

    async def delete(self, name: str) -> None:
        """Delete the object."""
        await self._lane.call("DELETE", f"{self.path}/{name}")

    async def _patched(self, name: str, path: str, patch: Object) -> Object:
        return self._known(name, await self._lane.call("PATCH", path, patch, _STRATEGIC_MERGE))

    def _known(self, name: str, answer: Object) -> Object:
        fault = misfit(answer, self.shape)
        if fault is None and answer["metadata"]["name"] != name:
            fault = f"it is about {answer['metadata']['name'][:100]}"
        if fault is not None:
            raise Unavailable(f"the answer about {self.path}/{name} makes no sense: {fault}")
        return answer


class KubeNodes(_Objects):
    """Nodes, as NodeApi wants them."""

    path, shape = _NODES, NodeShape

    async def patch_status(self, name: str, patch: Object) -> Object:
        """Apply a strategic-merge patch through the status subresource."""
        return await self._patched(name, f"{self.path}/{name}/status", patch)


class KubeLeases(_Objects):
    """Node leases, as LeaseApi wants them."""

    path, shape = f"/apis/coordination.k8s.io/v1/namespaces/{lease.NAMESPACE}/leases", LeaseShape


class KubeCSINodes(_Objects):
    """CSINodes, as CSINodeApi wants them."""

    path = "/apis/storage.k8s.io/v1/csinodes"


class KubeEvents(_Objects):
    """Events, as EventApi wants them."""

    path = f"/api/v1/namespaces/{events.NAMESPACE}/events"

    async def patch(self, name: str, patch: Object) -> Object:
        """Count an event that was sent before once more."""
        return await self._patched(name, f"{self.path}/{name}", patch)


class KubeSelection:
    """Some objects of one kind, listed and watched, as WatchApi wants them."""

    def __init__(self, lane: Lane, path: str, *, field_selector: str, shape: type[Stored] = Stored) -> None:
        self._lane = lane
        self._path = path
        self._query = [("fieldSelector", field_selector)]
        self._shape = shape

    @classmethod
    def node(cls, lane: Lane, name: str) -> "KubeSelection":
        """One Node: all that a node may see."""
        return cls(lane, _NODES, field_selector=f"metadata.name={name}", shape=NodeShape)

    async def list(self) -> Listed:
        """All of them now, and the version from which a watch goes on."""
        answer = await self._lane.call("GET", self._path, query=self._query)
        try:
            objects, version = list(answer.get("items") or ()), answer["metadata"]["resourceVersion"]
        except (KeyError, TypeError) as error:
            raise Unavailable(f"the list of {self._path} makes no sense: {error!r}") from error
        return Listed([self._fitting(obj) for obj in objects], str(version))

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        """What happens to them after a version: first the word that the watch is open, then each change."""
        query = [
            *self._query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds)),
        ]
        async with aclosing(self._lane.stream(self._path, query, seconds=seconds)) as lines:
            async for line in lines:
                yield Change("OPENED", {}) if line is None else self._change(line)

    def _change(self, line: Object) -> Change:
        kind, obj = line.get("type"), line.get("object")
        if not isinstance(obj, dict):
            raise Unavailable(f"an event of {self._path} makes no sense: it has no object")
        if kind == "ERROR":
            code = obj.get("code")
            raise refusal(code if isinstance(code, int) else 500, obj, None)
        if kind == "BOOKMARK":
            return Change("BOOKMARK", {"metadata": {"resourceVersion": _version(obj)}})
        return Change(str(kind), self._fitting(obj))

    def _fitting(self, obj: Object) -> Object:
        fault = misfit(obj, self._shape)
        if fault is not None:
            raise Unavailable(f"an object of {self._path} makes no sense: {fault}")
        return obj


def _version(bookmark: Object) -> str:
    metadata = bookmark.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not version:
        raise Unavailable("a bookmark makes no sense: it has no version")
    return version
