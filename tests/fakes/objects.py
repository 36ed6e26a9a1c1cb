"""The API server of the unit tests: the embedded cluster's registry, without a connection, under a FakeClock."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agent.adapters.answers import refusal
from agent.core.lease import LEASE_NAMESPACE
from agent.core.model import Object
from agent.minicluster.api_resources import CSINODES, LEASES, NAMESPACES
from agent.minicluster.event_strategy import EVENTS
from agent.minicluster.node_strategy import NODES
from agent.minicluster.object_store import HistoryExpiredError, ObjectChange, ObjectStore
from agent.minicluster.patches import STRATEGIC_MERGE_PATCH, strategic_merge
from agent.minicluster.pod_strategy import PODS
from agent.minicluster.registry import GenericRegistry
from agent.minicluster.status_errors import StatusError, expired
from agent.minicluster.strategy import DeleteOptions, Resource
from agent.node import NodeClients
from agent.ports import Change, CSINodeApi, EventApi, LeaseApi, Listed, NodeApi, PodApi, Unavailable, WatchApi
from tests.fakes.clock import FakeClock

_NAMESPACES = ("default", LEASE_NAMESPACE, "ns")

POD_NODE: Object = {
    "metadata": {"name": "n1", "uid": "node", "resourceVersion": "1", "labels": {}},
    "spec": {"podCIDRs": ["10.0.0.0/24"]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "1Gi", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
    },
}
"""A Node that has room for pods."""


def succeed(_verb: str) -> Exception | None:
    """What `FakeObjects.fail` is until a test sets it: no call fails."""
    return None


class FakeObjects:
    """The objects of one kind, a list of the calls that were made, and errors that a test asks for."""

    def __init__(
        self, clock: FakeClock, resource: Resource, namespace: str = "", *, history_length: int = 4096
    ) -> None:
        self.calls: list[tuple[float, str]] = []
        self.fail: Callable[[str], Exception | None] = succeed
        self.watch_seconds: list[int] = []
        self._clock = clock
        self._resource = resource
        self._namespace = namespace
        numbers, suffixes = itertools.count(1), itertools.count(1)
        self._store = ObjectStore(history_length=history_length)
        self._registry = GenericRegistry(
            self._store,
            now=clock.now,
            new_uid=lambda: f"uid-{next(numbers)}",
            new_suffix=lambda: str(next(suffixes)),
        )
        for name in _NAMESPACES:
            self._store.put(NAMESPACES.key, {"metadata": {"name": name}, "status": {"phase": "Active"}})
        self._news = asyncio.Event()
        self._cuts = 0

    @property
    def objects(self) -> dict[str, Object]:
        """The objects as they are stored, by name."""
        return {obj["metadata"]["name"]: obj for obj in self._store.list(self._resource.key)}

    def times(self, verb: str) -> list[float]:
        """When a verb was called."""
        return [at for at, called in self.calls if called == verb]

    def put(self, obj: Object) -> None:
        """Store an object as it is: nothing is checked, no call is noted."""
        kind = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        self._store.put(self._resource.key, _copy(kind | obj))
        self._announce()

    def drop(self, name: str) -> None:
        """Remove an object as others do; no call is noted."""
        self._store.remove(self._resource.key, self.objects[name])
        self._announce()

    def clear(self) -> None:
        """Remove all objects, as the garbage collector does."""
        for name in self.objects:
            self.drop(name)

    def cut(self) -> None:
        """End all watches as a crash of the server does."""
        self._cuts += 1
        self._announce()

    async def list(self) -> Listed:
        """All objects now."""
        return self._listed(lambda _: True)

    def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        """Every change after a version."""
        return self._watched(version, seconds, lambda _: True)

    def _listed(self, matches: Callable[[Object], bool]) -> Listed:
        self._called("list")
        found = [_copy(obj) for obj in self._store.list(self._resource.key) if matches(obj)]
        return Listed(found, str(self._store.resource_version))

    async def _watched(
        self, version: str, seconds: int, matches: Callable[[Object], bool]
    ) -> AsyncGenerator[Change, None]:
        self._called("watch")
        self.watch_seconds.append(seconds)
        end, cuts, seen = self._clock.elapsed + seconds, self._cuts, int(version)
        yield Change("OPENED", {})
        while self._clock.elapsed < end:
            for change in self._changes(seen):
                seen = change.version
                if matches(change.new or change.old or {}):
                    yield _shown(change)
            await self._clock.wait(self._news, end - self._clock.elapsed)
            if self._cuts > cuts:
                raise Unavailable("the connection was cut")

    def _changes(self, seen: int) -> Sequence[ObjectChange]:
        try:
            return self._store.changes(self._resource.key, seen)
        except HistoryExpiredError as error:
            raise _translated(expired(f"too old resource version: {seen} ({error.oldest})")) from error

    def _called(self, verb: str) -> None:
        self.calls.append((self._clock.elapsed, verb))
        if error := self.fail(verb):
            raise error

    def _ask(self, verb: str, request: Callable[[], Object]) -> Object:
        """Note the call and answer it, with the errors that an adapter makes of the answers of an API server."""
        self._called(verb)
        try:
            answer = request()
        except StatusError as error:
            raise _translated(error) from error
        self._announce()
        return _copy(answer)

    def _patch(self, namespace: str, name: str, patch: Object, subresource: str = "") -> Object:
        return self._registry.patch(
            self._resource, namespace, name, _copy(patch), STRATEGIC_MERGE_PATCH, subresource=subresource
        )

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _NamedObjects(FakeObjects):
    """Objects of a node: each has the node's name."""

    async def get(self, name: str) -> Any:
        return self._ask("get", lambda: self._registry.get(self._resource, self._namespace, name))

    async def create(self, new: Any) -> Any:
        return self._ask("create", lambda: self._registry.create(self._resource, self._namespace, _copy(new)))

    async def delete(self, name: str) -> None:
        self._ask("delete", lambda: self._registry.delete(self._resource, self._namespace, name)[0])


class FakeNodes(_NamedObjects):
    """Nodes."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, NODES)

    async def patch_status(self, name: str, patch: Object) -> Any:
        return self._ask("patch_status", lambda: self._patch("", name, patch, "status"))

    async def patch(self, name: str, patch: Object) -> Any:
        """Change what is no status, as users and controllers of the cluster do."""
        return self._ask("patch", lambda: self._patch("", name, patch))


class FakeLeases(_NamedObjects):
    """Leases of nodes."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, LEASES, LEASE_NAMESPACE)

    async def replace(self, lease: Any) -> Any:
        name = lease["metadata"]["name"]
        return self._ask("replace", lambda: self._registry.replace(LEASES, self._namespace, name, _copy(lease))[0])


class FakeCSINodes(_NamedObjects):
    """CSINodes."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, CSINODES)


class FakeEvents(FakeObjects):
    """Events."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, EVENTS)

    async def create(self, event: Object) -> Any:
        namespace = event["metadata"]["namespace"]
        return self._ask("create", lambda: self._registry.create(EVENTS, namespace, _copy(event)))

    async def patch(self, event: Object, patch: Object) -> Any:
        metadata = event["metadata"]
        return self._ask("patch", lambda: self._patch(metadata["namespace"], metadata["name"], patch))


class ForgottenEvents:
    """Events that nobody keeps."""

    async def create(self, event: Object) -> Any:
        return event

    async def patch(self, event: Object, patch: Object) -> Any:
        return event


class FakePods(FakeObjects):
    """Pods; `on_change` gets each change before the call that made it returns."""

    def __init__(self, clock: FakeClock, *, history_length: int = 4096) -> None:
        super().__init__(clock, PODS, history_length=history_length)
        self.on_change: Callable[[Change], None] = lambda _: None
        self.meanwhile: Callable[[str], None] = lambda _: None  # what happens before an answer arrives
        self.created: list[Object] = []  # as they were sent
        self.patches: list[str] = []
        self.deleted: list[tuple[str, str, str]] = []
        self._seen = self._store.resource_version

    def add(self, name: str, **fields: Any) -> None:
        """A pod that is bound to the node; `metadata`, `spec` and `status` may be others."""
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": 1}
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "pause:1"}], **fields.pop("spec", {})}
        status = {"phase": "Pending", "qosClass": "BestEffort"}
        self.put({"metadata": metadata, "spec": spec, "status": status} | fields)

    def terminate(self, name: str, grace: int = 30, when: str = "2026-01-02T03:04:35Z") -> None:
        """Ask for a pod's end."""
        self.mark(name, deletionTimestamp=when, deletionGracePeriodSeconds=grace, generation=2)

    def mark(self, name: str, **metadata: Any) -> None:
        """Change something about a pod, as others do."""
        self.put(strategic_merge(self.objects[name], {"metadata": metadata}, PODS.merge_keys))

    def phase(self, name: str) -> str:
        phase: str = self.objects[name]["status"]["phase"]
        return phase

    async def create(self, pod: Any) -> Any:
        namespace = pod["metadata"]["namespace"]
        answer = self._ask("create", lambda: self._registry.create(PODS, namespace, _copy(pod)))
        self.created.append(pod)
        return answer

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Any:
        answer = self._ask(f"patch {name}", lambda: self._patch(namespace, name, patch, "status"))
        self.patches.append(name)
        self.meanwhile(name)
        return answer

    async def delete(self, namespace: str, name: str, uid: str) -> None:
        options = DeleteOptions(grace_period_seconds=0, uid=uid)
        self._ask("delete", lambda: self._registry.delete(PODS, namespace, name, options)[0])
        self.deleted.append((namespace, name, uid))

    def _announce(self) -> None:
        super()._announce()
        changes, self._seen = self._changes(self._seen), self._store.resource_version
        for change in changes:
            self.on_change(_shown(change))


class FailingNodes:
    """The same Nodes through one connection of several, which fails alone."""

    def __init__(self, nodes: FakeNodes) -> None:
        self.fail: Callable[[str], Exception | None] = succeed
        self._nodes = nodes

    async def get(self, name: str) -> Any:
        self._called("get")
        return await self._nodes.get(name)

    async def create(self, node: Any) -> Any:
        self._called("create")
        return await self._nodes.create(node)

    async def patch_status(self, name: str, patch: Object) -> Any:
        self._called("patch_status")
        return await self._nodes.patch_status(name, patch)

    async def delete(self, name: str) -> None:
        self._called("delete")
        await self._nodes.delete(name)

    async def list(self) -> Listed:
        self._called("list")
        return await self._nodes.list()

    async def watch(self, version: str, *, seconds: int) -> AsyncGenerator[Change, None]:
        self._called("watch")
        async for change in self._nodes.watch(version, seconds=seconds):
            self._called("change")
            yield change

    def _called(self, verb: str) -> None:
        if error := self.fail(verb):
            raise error


def fake_clients(clock: FakeClock, nodes: FakeNodes) -> NodeClients:
    """The clients of a node without pods; its three connections to the Nodes are one."""
    return NodeClients(
        nodes=nodes,
        status_nodes=nodes,
        lease_nodes=nodes,
        leases=FakeLeases(clock),
        csinodes=FakeCSINodes(clock),
        events=FakeEvents(clock),
    )


def _copy(obj: Object) -> Object:
    """The object as it is after its way over a connection."""
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


def _translated(error: StatusError) -> Exception:
    return refusal(error.code, error.body(), None)


def _shown(change: ObjectChange) -> Change:
    if change.new is not None:
        return Change("ADDED" if change.old is None else "MODIFIED", _copy(change.new))
    last = change.old or {}
    return Change("DELETED", _copy({**last, "metadata": {**last["metadata"], "resourceVersion": str(change.version)}}))


if TYPE_CHECKING:
    _nodes: NodeApi = FakeNodes(FakeClock())
    _failing: NodeApi = FailingNodes(FakeNodes(FakeClock()))
    _leases: LeaseApi = FakeLeases(FakeClock())
    _csinodes: CSINodeApi = FakeCSINodes(FakeClock())
    _events: EventApi = FakeEvents(FakeClock())
    _forgotten: EventApi = ForgottenEvents()
    _pods: PodApi = FakePods(FakeClock())
    _watches: list[WatchApi] = [FakePods(FakeClock()), FakeNodes(FakeClock()), FailingNodes(FakeNodes(FakeClock()))]
