"""Events about a pod, from the difference between two of its statuses."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from agent.core.model import Container, ContainerStatus, Object, PodObject, PodStatus
from agent.core.pods.accessors import (
    EPHEMERAL,
    FAILED,
    SUCCEEDED,
    container_statuses,
    full_name,
    is_sidecar,
    is_terminating,
    placed_containers,
)
from agent.core.pods.container import BACK_OFF
from agent.core.pods.termination import SHUTDOWN_REASON

_NO_STATUS = cast("ContainerStatus", {})  # of a container that a status does not list


class PodEvent(NamedTuple):
    """An event about a pod, or about the container that a field path names."""

    reason: str
    message: str
    type: str = "Normal"
    path: str = ""


def pod_events(pod: PodObject, status: PodStatus) -> list[PodEvent]:
    """Return the events that a kubelet records when the status of a pod becomes this one."""
    old = pod.get("status", {})
    was, now, events = _by_name(old), _by_name(status), []
    for place, container in placed_containers(pod):
        before, after = was.get(container["name"], _NO_STATUS), now.get(container["name"], _NO_STATUS)
        events += _placed(place, container, _container_events(pod, container, before, after))
        if _is_killed(pod, status, place, container):
            events += _killing(place, container, before)
    return [*events, *_ends(old, status)]


def removal_events(pod: PodObject) -> list[PodEvent]:
    """Return the events that a kubelet records when a pod is gone whose deletion it has not seen."""
    if is_terminating(pod) and _is_deletion_seen(pod):
        return []
    statuses = _by_name(pod.get("status", {}))
    return [
        event
        for place, container in placed_containers(pod)
        for event in _killing(place, container, statuses.get(container["name"], _NO_STATUS))
    ]


def pod_reference(pod: PodObject, path: str = "") -> Object:
    """Return the reference to the pod, or to one of its containers, for an event."""
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


def _container_events(
    pod: PodObject, container: Container, before: ContainerStatus, after: ContainerStatus
) -> Iterator[PodEvent]:
    if after.get("containerID") != before.get("containerID"):
        yield from _pulled(container)
        yield PodEvent("Created", "Container created")
        yield PodEvent("Started", "Container started")
    waiting = after.get("state", {}).get("waiting")
    if waiting and waiting.get("reason") == BACK_OFF and waiting != before.get("state", {}).get("waiting"):
        message = f"Back-off restarting failed container {container['name']} in pod {full_name(pod)}"
        yield PodEvent("BackOff", message, "Warning")


def _is_killed(pod: PodObject, status: PodStatus, place: str, container: Container) -> bool:
    """A deletion kills containers with the first status after it; without one, only the end of the pod does."""
    if is_terminating(pod):
        return not _is_deletion_seen(pod)
    outlives = place == EPHEMERAL or is_sidecar(container)  # of main containers that end by themselves
    return status["phase"] in {SUCCEEDED, FAILED} and (bool(status.get("reason")) or outlives)


def _is_deletion_seen(pod: PodObject) -> bool:
    return bool(pod.get("status", {}).get("observedGeneration") == pod["metadata"].get("generation"))


def _killing(place: str, container: Container, before: ContainerStatus) -> list[PodEvent]:
    if "running" not in before.get("state", {}):
        return []
    return _placed(place, container, [PodEvent("Killing", f"Stopping container {container['name']}")])


def _placed(place: str, container: Container, events: Iterable[PodEvent]) -> list[PodEvent]:
    return [event._replace(path=f"spec.{place}{{{container['name']}}}") for event in events]


def _pulled(container: Container) -> Iterator[PodEvent]:
    image = container["image"]
    if container.get("imagePullPolicy") == "Always":
        yield PodEvent("Pulling", f'Pulling image "{image}"')
        message = f'Successfully pulled image "{image}" in 0s (0s including waiting). Image size: 0 bytes.'
        yield PodEvent("Pulled", message)
    else:
        message = f'Container image "{image}" already present on machine and can be accessed by the pod'
        yield PodEvent("Pulled", message)


def _ends(old: PodStatus, status: PodStatus) -> Iterator[PodEvent]:
    """Yield why a pod was rejected, evicted or out of time; a shutdown is an event about the Node only."""
    reason = status.get("reason")
    if not reason or reason == SHUTDOWN_REASON or status["phase"] != FAILED or old.get("phase") == FAILED:
        return
    message = status["message"].removeprefix("Pod was rejected: ")
    yield PodEvent(reason, message, "Normal" if reason == "DeadlineExceeded" else "Warning")


def _by_name(status: PodStatus) -> dict[str, ContainerStatus]:
    return {entry["name"]: entry for entry in container_statuses(status)}
