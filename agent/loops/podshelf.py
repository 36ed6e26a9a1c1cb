"""The pods of a node as the API last showed them, kept small."""

from collections.abc import Iterator, Sequence

import msgspec

from agent.core.model import Object, is_newer
from agent.core.pods.addresses import AddressBook
from agent.core.pods.ending import Order
from agent.core.pods.parts import is_begun, is_doomed, is_mirror, is_terminal
from agent.core.pods.resources import Claim, claim
from agent.core.pods.static import shown_hash
from agent.core.pods.stats import PodInfo, pod_info


class HeldPod:
    """A pod, and what follows from it for the others."""

    __slots__ = ("claim", "info", "is_end_told", "is_mirror", "is_removed", "lives", "order", "packed", "version")

    def __init__(self, pod: Object) -> None:
        self.claim = claim(pod)
        self.lives = is_begun(pod)  # whether it was taken on, and has not ended
        self.is_removed = False  # whether the API server was told that nothing is left of it
        self.is_end_told = False  # whether it was gone before we were done with it, and that was told
        self.order: Order | None = None
        self.pod = pod

    @property
    def name(self) -> str:
        """What a log line calls it."""
        return f"{self.info.namespace}/{self.info.name}"

    @property
    def pod(self) -> Object:
        """The whole object."""
        pod: Object = msgspec.json.decode(self.packed)
        return pod

    @pod.setter
    def pod(self, pod: Object) -> None:
        self.version = _version(pod)
        self.info = pod_info(pod)
        self.is_mirror = is_mirror(pod)
        self.packed = msgspec.json.encode(pod)  # a sixth of what its parts take


class PodShelf:
    """All pods by their UID, and the addresses that they have."""

    def __init__(self) -> None:
        self.addresses = AddressBook()
        self._pods: dict[str, HeldPod] = {}

    @property
    def size(self) -> int:
        """How many pods there are."""
        return len(self._pods)

    def get(self, uid: str) -> HeldPod | None:
        """One pod, if it is there."""
        return self._pods.get(uid)

    def find(self, namespace: str, name: str) -> Object | None:
        """The pod of that name, if it is there; no other one is decoded."""
        wanted = (namespace, name)
        held = (known for known in self._pods.values() if (known.info.namespace, known.info.name) == wanted)
        return next((known.pod for known in held), None)

    def encoded(self) -> Iterator[bytes]:
        """All pods as JSON; one that goes while somebody reads is left out, one that changes is told as it is then."""
        for uid in tuple(self._pods):
            if known := self._pods.get(uid):
                yield known.packed

    def infos(self) -> Sequence[PodInfo]:
        """What metrics and figures need of all pods, without decoding any."""
        return [known.info for known in self._pods.values()]

    def pods(self) -> Sequence[Object]:
        """All pods as the API has them."""
        return [known.pod for known in self._pods.values()]

    def lively(self) -> Sequence[Object]:
        """The pods that were taken on, and that nobody has told to end."""
        alive = [known.pod for known in self._pods.values() if known.lives and known.order is None]
        return [pod for pod in alive if not is_doomed(pod)]

    def leaving(self) -> Sequence[Object]:
        """The pods that live, but not for long."""
        alive = [known for known in self._pods.values() if known.lives]
        return [pod for known in alive if (pod := known.pod) and (known.order or is_doomed(pod))]

    def ending(self) -> frozenset[str]:
        """The UIDs of pods that were ordered to end and have not."""
        return frozenset(uid for uid, known in self._pods.items() if known.order)

    def shown(self) -> frozenset[str]:
        """Which static pods have their mirror pods here."""
        return frozenset(shown_hash(known.pod) for known in self._pods.values() if known.is_mirror)

    def claims(self, but: HeldPod) -> tuple[Claim, ...]:
        """What all other pods take that live here."""
        return tuple(other.claim for other in self._pods.values() if other.lives and other is not but)

    def keep(self, pod: Object) -> bool:
        """Remember a pod; whether there is something new to see."""
        uid = uid_of(pod)
        known = self._pods.get(uid)
        if known and (known.version == _version(pod) or is_newer(known.version, _version(pod))):
            return False
        pod["metadata"].pop("managedFields", None)  # half of the object, and nobody here reads it
        for field in ("kind", "apiVersion"):  # a watch tells them and a list does not; no item of a PodList has them
            pod.pop(field, None)
        if known:
            known.pod, known.claim = pod, claim(pod)
        else:
            known = self._pods[uid] = HeldPod(pod)
            if ips := pod.get("status", {}).get("podIPs"):
                self.addresses.keep(uid, tuple(one["ip"] for one in ips))
        if is_terminal(pod):
            known.lives, known.order = False, None
            self.addresses.free(uid)
        return True

    def forget(self, uid: str) -> None:
        """A pod is not there any more."""
        self._pods.pop(uid, None)
        self.addresses.free(uid)

    def others(self, objects: Sequence[Object]) -> set[str]:
        """The UIDs of the pods that are not among these."""
        return self._pods.keys() - {uid_of(pod) for pod in objects}


def uid_of(pod: Object) -> str:
    """The pod's UID."""
    uid: str = pod["metadata"]["uid"]
    return uid


def _version(pod: Object) -> str:
    version: str = pod["metadata"]["resourceVersion"]
    return version
