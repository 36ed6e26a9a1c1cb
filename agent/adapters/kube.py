"""The Kubernetes API behind our ports: one class for each kind of object that a node has to do with."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from agent.adapters.answers import TooLarge, WatchEvent, decoded, refusal
from agent.adapters.api_connection import ApiConnection
from agent.adapters.shapes import AccessReviewStatus, LeaseShape, NodeShape, Stored, TokenReviewStatus, misfit
from agent.core import lease
from agent.core.model import Object
from agent.ports import Change, Listed, Unavailable

STRATEGIC_MERGE = "application/strategic-merge-patch+json"
_NODES = "/api/v1/nodes"
_MOST_PAGES = 1000
_MOST_LIST_BYTES = 2**29
_LONGEST_TOKEN = _LONGEST_VERSION = 8192


def checked(obj: Object, shape: type[Stored], *, name: str, source: str) -> Object:
    """Return the object if it has this shape and this name, where one is given; raise Unavailable otherwise."""
    fault = misfit(obj, shape)
    if fault is None and name not in {"", obj["metadata"]["name"]}:
        fault = f"it is about {obj['metadata']['name']}"
    if fault is not None:
        raise Unavailable(f"{source} makes no sense: {fault}")
    return obj


def without_managed_fields(obj: Object) -> Object:
    """Drop managedFields: half of an object, and nobody here reads them."""
    obj["metadata"].pop("managedFields", None)
    return obj


class _Objects:
    """Objects of one kind: what the API server answers is checked before anybody else sees it."""

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
        return self._checked(name, await self._connection.call("PATCH", path, patch, STRATEGIC_MERGE))

    def _checked(self, name: str, answer: Object) -> Object:
        return checked(answer, self.shape, name=name, source=f"the answer about {self.path}/{name}")


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

    async def _status(self, version: str, kind: str, spec: Object, shape: type[Struct]) -> Object:
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
        shape: type[Stored] = Stored,
        page: int | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._query = [("fieldSelector", field_selector)] if field_selector else []
        self._name = field_selector.partition("metadata.name=")[2]  # of the only one, where it is one
        self._shape = shape
        self._page = page

    @classmethod
    def node(cls, connection: ApiConnection, name: str) -> "KubeSelection":
        """One Node: all that a node may see."""
        return cls(connection, _NODES, field_selector=f"metadata.name={name}", shape=NodeShape)

    async def list(self) -> Listed:
        """All of them now, page by page, and the version from which a watch goes on."""
        found: list[Object] = []
        token, limit, total_bytes = "", self._page, 0
        for _ in range(_MOST_PAGES):
            try:
                page, size = await self._connection.page(self._path, [*self._query, *_page_query(limit, token)])
            except TooLarge:
                if limit is None or limit == 1:
                    raise
                limit //= 2  # objects of a megabyte each, perhaps
                continue
            items, total_bytes = page.items or [], total_bytes + size
            if self._name and len(items) > 1:
                raise Unavailable(f"the list of {self._path} makes no sense: there are {len(items)} of one name")
            changes = [self._read("ADDED", bytes(raw)) for raw in items]
            found += [change.object for change in changes if change and change.kind == "ADDED"]
            if not page.metadata.token:
                return Listed(found, _version(page.metadata.version, self._path))
            is_endless = page.metadata.token == token or total_bytes > _MOST_LIST_BYTES
            if is_endless or self._name or len(page.metadata.token) > _LONGEST_TOKEN:
                break
            token = page.metadata.token
        raise Unavailable(f"the list of {self._path} has no end")

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        """What happens to them after a version: first the word that the watch is open, then each change."""
        query = [
            *self._query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", str(seconds)),
        ]
        async with aclosing(self._connection.stream(self._path, query, seconds=seconds)) as events:
            async for event in events:
                change = Change("OPENED", {}) if event is None else self._change(event)
                if change is not None:
                    yield change

    def _change(self, event: WatchEvent) -> Change | None:
        if event.type == "ERROR":
            error = decoded(200, bytes(event.object))
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
        return without_managed_fields(checked(decoded(200, content), self._shape, name=self._name, source=source))


def _page_query(limit: int | None, token: str) -> list[tuple[str, str]]:
    return [*([("limit", str(limit))] if limit else []), *([("continue", token)] if token else [])]


def _bookmarked(content: bytes) -> str:
    metadata = decoded(200, content).get("metadata")
    return _version(metadata.get("resourceVersion") if isinstance(metadata, dict) else None, "a bookmark")


def _version(text: object, where: str) -> str:
    if not isinstance(text, str) or not text or len(text) > _LONGEST_VERSION:
        raise Unavailable(f"{where} makes no sense: it has no version")
    return text
