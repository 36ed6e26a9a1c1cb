"""Events about a pod: the difference between two of its states."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.core.model import Object
from agent.core.pods.container import BACK_OFF
from agent.core.pods.ending import SHUTDOWN_REASON
from agent.core.pods.parts import (
    EPHEMERAL,
    FAILED,
    SUCCEEDED,
    container_statuses,
    full_name,
    is_doomed,
    is_sidecar,
    placed_containers,
)


class PodEvent(NamedTuple):
    """Something that happened to a pod, or to the part of it that a path names."""

    reason: str
    message: str
    type: str = "Normal"
    path: str = ""


def pod_events(pod: Object, status: Object) -> list[PodEvent]:
    """What a kubelet tells when the status of a pod becomes this one."""
    old = pod.get("status", {})
    was, now, events = _by_name(old), _by_name(status), []
    for place, container in placed_containers(pod):
        before, after = was.get(container["name"], {}), now.get(container["name"], {})
        events += _placed(place, container, _container_events(pod, container, before, after))
        if _is_told_to_end(pod, status, place, container):
            events += _killing(place, container, before)
    return [*events, *_ends(old, status)]


def removal_events(pod: Object) -> list[PodEvent]:
    """What a kubelet tells when a pod is gone before it was seen to be deleted."""
    if is_doomed(pod) and _is_noticed(pod):
        return []
    statuses = _by_name(pod.get("status", {}))
    return [
        event
        for place, container in placed_containers(pod)
        for event in _killing(place, container, statuses.get(container["name"], {}))
    ]


def reference(pod: Object, path: str = "") -> Object:
    """The pod, or a part of it, as an event refers to it."""
    metadata = pod["metadata"]
    about = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }
    return about | {"fieldPath": path} if path else about


def _container_events(pod: Object, container: Object, before: Object, after: Object) -> Iterator[PodEvent]:
    state, was = after.get("state", {}), before.get("state", {})
    if after.get("containerID") != before.get("containerID"):
        yield from _pulled(container)
        yield PodEvent("Created", "Container created")
        yield PodEvent("Started", "Container started")
    waiting = state.get("waiting") or {}
    if waiting.get("reason") == BACK_OFF and waiting != was.get("waiting"):
        told = f"Back-off restarting failed container {container['name']} in pod {full_name(pod)}"
        yield PodEvent("BackOff", told, "Warning")


def _is_told_to_end(pod: Object, status: Object, place: str, container: Object) -> bool:
    """The first status after a deletion says that it was seen; without one, only the pod's end is a reason."""
    if is_doomed(pod):
        return not _is_noticed(pod)
    outlives = place == EPHEMERAL or is_sidecar(container)  # and would run on beside what has ended by itself
    return status["phase"] in {SUCCEEDED, FAILED} and (bool(status.get("reason")) or outlives)


def _is_noticed(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("observedGeneration") == pod["metadata"].get("generation"))


def _killing(place: str, container: Object, before: Object) -> list[PodEvent]:
    if "running" not in before.get("state", {}):
        return []
    return _placed(place, container, [PodEvent("Killing", f"Stopping container {container['name']}")])


def _placed(place: str, container: Object, events: Iterable[PodEvent]) -> list[PodEvent]:
    return [event._replace(path=f"spec.{place}{{{container['name']}}}") for event in events]


def _pulled(container: Object) -> Iterator[PodEvent]:
    image = container["image"]
    if container.get("imagePullPolicy") == "Always":
        yield PodEvent("Pulling", f'Pulling image "{image}"')
        told = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        yield PodEvent("Pulled", told)
    else:
        told = f'Container image "{image}" already present on machine and can be accessed by the pod'
        yield PodEvent("Pulled", told)


def _ends(old: Object, status: Object) -> Iterator[PodEvent]:
    """Why a pod was rejected, evicted or out of time; of a node that goes down only the Node tells."""
    reason = status.get("reason")
    if not reason or reason == SHUTDOWN_REASON or status["phase"] != FAILED or old.get("phase") == FAILED:
        return
    message = status["message"].removeprefix("Pod was rejected: ")
    yield PodEvent(reason, message, "Normal" if reason == "DeadlineExceeded" else "Warning")


def _by_name(status: Object) -> dict[str, Object]:
    return {one["name"]: one for one in container_statuses(status)}
