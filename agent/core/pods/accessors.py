"""Read single facts from a pod object."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from agent.core.model import Container, ContainerStatus, PodObject, PodStatus
from agent.core.times import parse_time

SUCCEEDED, FAILED, RUNNING, PENDING = "Succeeded", "Failed", "Running", "Pending"
INIT, MAIN, EPHEMERAL = (
    "initContainers",
    "containers",
    "ephemeralContainers",
)  # the fields of a spec that hold containers
CRITICAL_PRIORITY = 2_000_000_000
_MIRROR = "kubernetes.io/config.mirror"
_DEFAULT_GRACE_SECONDS = 30  # as the API server sets it
_MOST_SECONDS = 100 * 365 * 24 * 3600


def init_containers(pod: PodObject) -> list[Container]:
    """Return the init containers, sidecars included, in the order in which they start."""
    return pod["spec"].get("initContainers") or []


def containers(pod: PodObject) -> list[Container]:
    """Return the main containers in the order in which they start."""
    return pod["spec"]["containers"]


def ephemeral_containers(pod: PodObject) -> list[Container]:
    """Return the ephemeral containers, which `kubectl debug` adds to a running pod."""
    return pod["spec"].get("ephemeralContainers") or []


def placed_containers(pod: PodObject) -> Iterator[tuple[str, Container]]:
    """Yield every container with the field of the spec that holds it."""
    yield from ((INIT, container) for container in init_containers(pod))
    yield from ((MAIN, container) for container in containers(pod))
    yield from ((EPHEMERAL, container) for container in ephemeral_containers(pod))


def container_statuses(status: PodStatus) -> Iterator[ContainerStatus]:
    """Yield the status of each container."""
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()
    yield from status.get("ephemeralContainerStatuses") or ()


def is_sidecar(container: Container) -> bool:
    """Return whether an init container keeps running beside the main containers."""
    return container.get("restartPolicy") == "Always"


def on_host_network(pod: PodObject) -> bool:
    """Return whether the pod uses the node's own addresses."""
    return bool(pod["spec"].get("hostNetwork"))


def is_terminal(pod: PodObject) -> bool:
    """Return whether the phase in the API is final."""
    return pod.get("status", {}).get("phase") in {SUCCEEDED, FAILED}


def is_admitted(pod: PodObject) -> bool:
    """Return whether a node has admitted the pod."""
    return bool(pod.get("status", {}).get("startTime"))


def is_terminating(pod: PodObject) -> bool:
    """Return whether the pod was deleted in the API and waits for its node."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def annotations_of(pod: PodObject) -> Mapping[str, str]:
    """Return the annotations, of which there may be none."""
    return pod["metadata"].get("annotations") or {}


def is_mirror(pod: PodObject) -> bool:
    """Return whether the pod is the mirror of a static pod."""
    return _MIRROR in pod["metadata"].get("annotations", {})


def is_critical(pod: PodObject) -> bool:
    """Return whether the node needs the pod to work."""
    return is_mirror(pod) or priority(pod) >= CRITICAL_PRIORITY


def priority(pod: PodObject) -> int:
    """Return the pod's priority; 0 where it has none."""
    return int(pod["spec"].get("priority") or 0)


def is_of_job(pod: PodObject) -> bool:
    """Return whether a Job owns the pod."""
    return any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences", ()))


def full_name(pod: PodObject) -> str:
    """Return the pod's name as kubelet's messages write it."""
    metadata = pod["metadata"]
    return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"


def deletion_requested_at(pod: PodObject) -> datetime:
    """Return when somebody deleted the pod."""
    return parse_time(pod["metadata"]["deletionTimestamp"]) - timedelta(seconds=deletion_grace_seconds(pod))


def deletion_grace_seconds(pod: PodObject) -> int:
    """Return how long a deleted pod may take to end."""
    return clamp_seconds(pod["metadata"].get("deletionGracePeriodSeconds"))


def termination_grace_seconds(pod: PodObject) -> int:
    """Return the grace period of the pod's spec."""
    return clamp_seconds(pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS))


def clamp_seconds(seconds: int | None) -> int:
    """Limit seconds to what can be added to a time: the API accepts any number."""
    return min(max(seconds or 0, 0), _MOST_SECONDS)
