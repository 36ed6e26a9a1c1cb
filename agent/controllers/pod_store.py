"""The pods of a node as the API last showed them: whole pods as JSON, the facts that are read often beside them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from agent.core.model import PodObject, is_newer
from agent.core.pods.accessors import is_terminal
from agent.core.pods.annotations import InvalidAnnotation
from agent.core.pods.info import PodCounts, PodInfo, pod_info
from agent.core.pods.ip_allocator import IPAllocator
from agent.core.pods.resources import PodRequest
from agent.core.pods.termination import KillRequest
from agent.core.pods.usage import Resource

Decoder = Callable[[bytes], PodObject]


class CachedPod:
    """A pod in the store, and what the node does with it."""

    __slots__ = (
        "_decoder",
        "info",
        "is_active",
        "is_deleted",
        "is_removal_reported",
        "kill_request",
        "packed",
        "reported",
        "version",
    )

    def __init__(self, info: PodInfo, decoder: Decoder) -> None:
        self.info = info
        self.version = ""
        self.packed = b""  # a sixth of the memory that the decoded object takes
        self.is_active = info.is_admitted  # from its admission, which the API learns later, until it has ended
        self.is_deleted = False  # the API server has taken our last DELETE
        self.is_removal_reported = False  # the pod was gone before its containers had ended, and events say so
        self.kill_request: KillRequest | None = None
        self.reported: frozenset[InvalidAnnotation] = frozenset()  # annotations that events were about
        self._decoder = decoder

    @property
    def is_terminating(self) -> bool:
        """Whether the pod has to end, because it was deleted or because the node kills it."""
        return self.kill_request is not None or self.info.is_terminating

    def decode(self) -> PodObject:
        """Decode the whole object, anew with each call."""
        return self._decoder(self.packed)


class PodStore:
    """All pods of a node by UID and by name, their addresses, and how many there are in which state."""

    def __init__(
        self, decoder: Decoder = msgspec.json.decode, *, usage_rules: Mapping[Resource, str] | None = None
    ) -> None:
        self.addresses = IPAllocator()
        self.counts = PodCounts()
        self._usage_rules = usage_rules or {}
        self._decoder = decoder
        self._pods: dict[str, CachedPod] = {}
        self._by_name: dict[tuple[str, str], CachedPod] = {}

    @property
    def size(self) -> int:
        """The number of pods."""
        return len(self._pods)

    def get(self, uid: str) -> CachedPod | None:
        """Return the pod with this UID."""
        return self._pods.get(uid)

    def by_name(self, namespace: str, name: str) -> CachedPod | None:
        """Return the pod with this name; of two with one name, the one that was changed last."""
        return self._by_name.get((namespace, name))

    def encoded(self) -> Iterator[bytes]:
        """Yield all pods as JSON, each as it is when it is read; pods that are removed meanwhile are skipped."""
        for uid in tuple(self._pods):
            if cached := self._pods.get(uid):
                yield cached.packed

    def infos(self) -> Sequence[PodInfo]:
        """Return the facts about all pods."""
        return [cached.info for cached in self._pods.values()]

    def running(self) -> Sequence[PodInfo]:
        """Return the active pods that nobody has asked to end."""
        return [cached.info for cached in self._pods.values() if cached.is_active and not cached.is_terminating]

    def terminating(self) -> Sequence[PodInfo]:
        """Return the active pods that have to end."""
        return [cached.info for cached in self._pods.values() if cached.is_active and cached.is_terminating]

    def killed(self) -> frozenset[str]:
        """Return the UIDs of the pods that the node kills and that have not ended."""
        return frozenset(uid for uid, cached in self._pods.items() if cached.kill_request)

    def mirror_hashes(self) -> frozenset[str]:
        """Return the hashes of the static pods that have a mirror pod."""
        hashes = (cached.info.mirror_hash for cached in self._pods.values())
        return frozenset(value for value in hashes if value is not None)

    def requests(self, but: CachedPod) -> tuple[PodRequest, ...]:
        """Return what all other active pods request."""
        return tuple([other.info.request for other in self._pods.values() if other.is_active and other is not but])

    def upsert(self, pod: PodObject) -> bool:
        """Store a pod, unless this or a newer version is stored; return whether it was. An error changes nothing."""
        uid, version = uid_of(pod), str(pod["metadata"]["resourceVersion"])
        cached = self._pods.get(uid)
        if cached and (cached.version == version or is_newer(cached.version, version)):
            return False
        pod.pop("kind", None)  # a watch sends them and a list does not; no item of a PodList has them
        pod.pop("apiVersion", None)
        info, packed = pod_info(pod, self._usage_rules), msgspec.json.encode(pod)
        if cached:
            self._unindex(cached)
        else:
            cached = self._pods[uid] = CachedPod(info, self._decoder)
            if ips := pod.get("status", {}).get("podIPs"):
                self.addresses.keep(uid, tuple(entry["ip"] for entry in ips))
        cached.info, cached.packed, cached.version = info, packed, version
        self.counts.add(info)
        self._by_name[info.namespace, info.name] = cached
        if is_terminal(pod):
            cached.is_active, cached.kill_request = False, None
            self.addresses.free(uid)
        return True

    def remove(self, uid: str) -> CachedPod | None:
        """Remove a pod and return it."""
        cached = self._pods.pop(uid, None)
        if cached:
            self._unindex(cached)
        self.addresses.free(uid)
        return cached

    def stale(self, objects: Sequence[PodObject]) -> set[str]:
        """Return the UIDs of the stored pods that are not among the objects of a list."""
        return self._pods.keys() - {uid_of(pod) for pod in objects}

    def _unindex(self, cached: CachedPod) -> None:
        self.counts.subtract(cached.info)
        name = (cached.info.namespace, cached.info.name)
        if self._by_name.get(name) is cached:
            del self._by_name[name]


def uid_of(pod: PodObject) -> str:
    """Return the pod's UID."""
    return pod["metadata"]["uid"]
