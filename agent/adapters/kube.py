"""The Kubernetes API behind our ports: one class for each kind of object that a node reads or writes."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from math import ceil
from typing import Any, Final, Literal

from msgspec import Struct

from agent.adapters.answers import TooLarge, WatchEvent, decoded, refusal
from agent.adapters.api_connection import ApiConnection, Query
from agent.adapters.shapes import (
    AccessReviewStatus,
    LeaseShape,
    NodeShape,
    PodShape,
    Stored,
    TokenReviewStatus,
    metadata,
    misfit,
)
from agent.core import lease
from agent.core.model import Object
from agent.ports import Change, Listed, Unavailable

log = logging.getLogger(__name__)

_STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
_NODES = "/api/v1/nodes"
_MOST_PAGES = 1000
_MOST_LIST_BYTES = 2**29
_LONGEST_TOKEN = _LONGEST_VERSION = 8192
_NODE_PAGE = 500
_PAGE = 100  # pods that are in memory as whole objects at a time
# A bound for the memory of all pods of a node, about in bytes: 100 pods of 1 MB, or some 10,000 of usual size.
_MOST_WEIGHT = 128 * 2**20
_NODES_OF_WEIGHT = 100
_POD_WEIGHT, _FIELD_WEIGHT = 4096, 64
_MOST_REPORTED = 1000


def _checked(obj: Object, shape: type[Stored], *, name: str, source: str) -> Object:
    """Return the object if it has this shape and this name, where one is given; raise Unavailable otherwise."""
    fault = misfit(obj, shape)
    if fault is None and name not in {"", obj["metadata"]["name"]}:
        fault = f"it is about {obj['metadata']['name']}"
    if fault is not None:
        raise Unavailable(f"{source} makes no sense: {fault}")
    return obj


def _without_managed_fields(obj: Object) -> Object:
    """Drop managedFields: half of an object, and nobody here reads them."""
    obj["metadata"].pop("managedFields", None)
    return obj


class _Objects:
    """Objects of one kind; every answer of the API server is checked here."""

    path: str
    shape: type[Stored] = Stored

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def get(self, name: str) -> Any:
        """Read the object."""
        return self._checked(name, await self._connection.call("GET", f"{self.path}/{name}"))

    async def create(self, obj: Any) -> Any:
        """Create the object."""
        return self._checked(obj["metadata"]["name"], await self._connection.call("POST", self.path, obj))

    async def replace(self, obj: Any) -> Any:
        """Write the object if it is still the version it was read as."""
        name = obj["metadata"]["name"]
        return self._checked(name, await self._connection.call("PUT", f"{self.path}/{name}", obj))

    async def delete(self, name: str) -> None:
        """Delete the object."""
        await self._connection.call("DELETE", f"{self.path}/{name}")

    async def _patched(self, name: str, path: str, patch: Object) -> Object:
        return self._checked(name, await self._connection.call("PATCH", path, patch, _STRATEGIC_MERGE))

    def _checked(self, name: str, answer: Object) -> Object:
        return _checked(answer, self.shape, name=name, source=f"the answer about {self.path}/{name}")


class KubeNodes(_Objects):
    """Nodes, as NodeApi wants them."""

    path, shape = _NODES, NodeShape

    async def patch_status(self, name: str, patch: Object) -> Any:
        """Apply a strategic-merge patch through the status subresource."""
        return await self._patched(name, f"{self.path}/{name}/status", patch)


class KubeLeases(_Objects):
    """Node leases, as LeaseApi wants them."""

    path, shape = f"/apis/coordination.k8s.io/v1/namespaces/{lease.LEASE_NAMESPACE}/leases", LeaseShape


class KubeCSINodes(_Objects):
    """CSINodes, as CSINodeApi wants them."""

    path = "/apis/storage.k8s.io/v1/csinodes"


class KubeEvents(_Objects):
    """Events, as EventApi wants them."""

    path = "/api/v1/namespaces"

    async def create(self, event: Object) -> Object:
        """Send an event."""
        return self._checked(event["metadata"]["name"], await self._connection.call("POST", self._place(event), event))

    async def patch(self, event: Object, patch: Object) -> Object:
        """Count an event that was sent before once more."""
        name = event["metadata"]["name"]
        return await self._patched(name, f"{self._place(event)}/{name}", patch)

    def _place(self, event: Object) -> str:
        return f"{self.path}/{event['metadata']['namespace']}/events"


class KubeReviews:
    """Reviews of tokens and of access, as ReviewApi wants them."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def token(self, token: str) -> Object:
        """Ask who bears a token."""
        return await self._status("authentication.k8s.io/v1", "TokenReview", {"token": token}, TokenReviewStatus)

    async def access(self, question: Object) -> Object:
        """Ask whether somebody may do something."""
        return await self._status("authorization.k8s.io/v1", "SubjectAccessReview", question, AccessReviewStatus)

    async def own_access(self, question: Object) -> Object:
        """Ask whether we may do something."""
        return await self._status("authorization.k8s.io/v1", "SelfSubjectAccessReview", question, AccessReviewStatus)

    async def _status(
        self,
        version: str,
        kind: Literal["TokenReview", "SubjectAccessReview", "SelfSubjectAccessReview"],
        spec: Object,
        shape: type[Struct],
    ) -> Object:
        review = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec}
        answer = await self._connection.call("POST", f"/apis/{version}/{kind.lower()}s", review)
        status: Object = answer.get("status", "")
        if (fault := misfit(status, shape)) is not None:
            raise Unavailable(f"the answer to a {kind} makes no sense: {fault}")
        return status


class KubeSelection:
    """Some objects of one kind, listed and watched, as WatchApi wants them."""

    def __init__(
        self,
        connection: ApiConnection,
        path: str,
        *,
        field_selector: str = "",
        label_selector: str = "",
        shape: type[Stored] = Stored,
        page: int | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._query = [("fieldSelector", field_selector)] if field_selector else []
        self._query += [("labelSelector", label_selector)] if label_selector else []
        self._name = field_selector.partition("metadata.name=")[2]  # if it selects a single object
        self._shape = shape
        self._page = page

    @classmethod
    def node(cls, connection: ApiConnection, name: str) -> "KubeSelection":
        """Return the selection of one Node, all that a node may read."""
        return cls(connection, _NODES, field_selector=f"metadata.name={name}", shape=NodeShape)

    async def list(self) -> Listed:
        """List all of them, page by page, with the version from which a watch goes on."""
        objects: list[Object] = []
        token, limit, total_bytes = "", self._page, 0
        for _ in range(_MOST_PAGES):
            try:
                page, size = await self._connection.page(self._path, (*self._query, *_page_query(limit, token)))
            except TooLarge:
                if limit is None or limit == 1:
                    raise
                limit //= 2  # objects of a megabyte each, perhaps
                continue
            items, total_bytes = page.items or [], total_bytes + size
            if self._name and len(items) > 1:
                raise Unavailable(f"the list of {self._path} makes no sense: there are {len(items)} of one name")
            changes = [self._read("ADDED", bytes(raw)) for raw in items]
            objects += [change.object for change in changes if change and change.kind == "ADDED"]
            if not page.metadata.token:
                return Listed(objects, _version(page.metadata.version, self._path))
            is_endless = page.metadata.token == token or total_bytes > _MOST_LIST_BYTES
            if is_endless or self._name or len(page.metadata.token) > _LONGEST_TOKEN:
                break
            token = page.metadata.token
        raise Unavailable(f"the list of {self._path} has no end")

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        """Watch them from a version on: the first change is OPENED, when the server has opened the watch."""
        query = (
            *self._query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds)),
        )
        async with aclosing(self._connection.stream(self._path, query, seconds=seconds)) as events:
            async for event in events:
                change = Change("OPENED", {}) if event is None else self._change(event)
                if change is not None:
                    yield change

    def _change(self, event: WatchEvent) -> Change | None:
        if event.type == "ERROR":
            error = decoded(bytes(event.object))
            code = error.get("code")
            raise refusal(code if isinstance(code, int) else 500, error, None)
        if event.type == "BOOKMARK":
            return Change("BOOKMARK", {"metadata": {"resourceVersion": _bookmarked(bytes(event.object))}})
        return self._read(event.type, bytes(event.object))

    def _read(self, kind: str, content: bytes) -> Change | None:
        """Return the change that an object in a list or a watch means; None means that the object is skipped."""
        return Change(kind, self._decoded(content))

    def _decoded(self, content: bytes) -> Object:
        """Decode and check an object; raise Unavailable where it does not have the shape or the name."""
        source = f"an object of {self._path}"
        return _without_managed_fields(_checked(decoded(content), self._shape, name=self._name, source=source))


class NodeSelection(KubeSelection):
    """Lists and watches the Nodes with a label, or all, page by page."""

    def __init__(self, connection: ApiConnection, label_selector: str = "") -> None:
        super().__init__(connection, _NODES, label_selector=label_selector, shape=NodeShape, page=_NODE_PAGE)


class NodeNames(NodeSelection):
    """The same, but only with their metadata: there may be thousands."""

    def _decoded(self, content: bytes) -> Object:
        return {"metadata": metadata(content)}


class LeaseSelection(KubeSelection):
    """Lists the leases of all nodes."""

    def __init__(self, connection: ApiConnection) -> None:
        super().__init__(connection, KubeLeases.path, shape=LeaseShape, page=_NODE_PAGE)


class KubePods:
    """PodApi on a connection to the API server."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def create(self, pod: Any) -> Any:
        """Create a mirror pod."""
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        answer = await self._connection.call("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        return _checked_pod(answer, namespace, name)

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Any:
        """Apply a strategic-merge patch through the status subresource."""
        answer = await self._connection.call("PATCH", f"{_pod_path(namespace, name)}/status", patch, _STRATEGIC_MERGE)
        return _checked_pod(answer, namespace, name)

    async def delete(self, namespace: str, name: str, uid: str) -> None:
        """Delete a terminated pod without a grace period, unless another pod has its name by now."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        await self._connection.call("DELETE", _pod_path(namespace, name), options)


class PodSelection(KubeSelection):
    """Lists and watches the pods of one node or of all; one without the shape of a pod is logged once and skipped."""

    def __init__(self, connection: ApiConnection, node_name: str = "", *, nodes: int = 1) -> None:
        selector = f"spec.nodeName={node_name}" if node_name else "spec.nodeName!="
        super().__init__(connection, "/api/v1/pods", field_selector=selector, shape=PodShape, page=_PAGE)
        # What one node may take is enough for the pods of a hundred.
        self._most_weight = _MOST_WEIGHT * ceil(nodes / _NODES_OF_WEIGHT)
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
            self._add_weight(pod["metadata"]["uid"], content)
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

    def _add_weight(self, uid: str, content: bytes) -> None:
        """Count the pod's weight; raise Unavailable where all pods together would be too heavy."""
        weight = _POD_WEIGHT + len(content) + _FIELD_WEIGHT * (content.count(b":") + content.count(b","))
        total = self._weight - self._weights.get(uid, 0) + weight
        if total > self._most_weight:
            raise Unavailable("there is no room for it beside the other pods")
        self._weights[uid], self._weight = weight, total

    def _report(self, uid: str, name: str, error: Unavailable) -> None:
        if uid in self._reported or len(self._reported) >= _MOST_REPORTED:
            return
        self._reported.add(uid)
        log.error("Pod makes no sense and is left alone", {"err": error, "pod": name})


def _checked_pod(answer: Object, namespace: str, name: str) -> Object:
    """Return the answer about a pod, or raise Unavailable where it does not make sense."""
    source = f"the answer about {_pod_path(namespace, name)}"
    return _without_managed_fields(_checked(answer, PodShape, name=name, source=source))


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _page_query(limit: int | None, token: str) -> Query:
    return (*((("limit", str(limit)),) if limit else ()), *((("continue", token),) if token else ()))


def _bookmarked(content: bytes) -> str:
    metadata = decoded(content).get("metadata")
    return _version(metadata.get("resourceVersion") if isinstance(metadata, dict) else None, "a bookmark")


def _version(text: object, where: str) -> str:
    if not isinstance(text, str) or not text or len(text) > _LONGEST_VERSION:
        raise Unavailable(f"{where} makes no sense: it has no version")
    return text
