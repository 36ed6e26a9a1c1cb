"""What a pod says about itself, read from the object as the API has it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agent.core.model import Object
from agent.core.times import parse_time

SUCCEEDED, FAILED, RUNNING, PENDING = "Succeeded", "Failed", "Running", "Pending"
INIT, MAIN, EPHEMERAL = "initContainers", "containers", "ephemeralContainers"  # where containers stand in a spec
CRITICAL_PRIORITY = 2_000_000_000
_MIRROR = "kubernetes.io/config.mirror"
_DEFAULT_GRACE_SECONDS = 30  # as the API server sets it
_MOST_SECONDS = 100 * 365 * 24 * 3600


def init_containers(pod: Object) -> list[Object]:
    """The init containers, sidecars among them, in the order in which they start."""
    found: list[Object] = pod["spec"].get("initContainers") or []
    return found


def containers(pod: Object) -> list[Object]:
    """The containers proper, in the order in which they start."""
    found: list[Object] = pod["spec"]["containers"]
    return found


def ephemeral_containers(pod: Object) -> list[Object]:
    """The containers that somebody added to a running pod, to look into it."""
    found: list[Object] = pod["spec"].get("ephemeralContainers") or []
    return found


def placed_containers(pod: Object) -> Iterator[tuple[str, Object]]:
    """Every container with the field of the spec that it stands in."""
    yield from ((INIT, container) for container in init_containers(pod))
    yield from ((MAIN, container) for container in containers(pod))
    yield from ((EPHEMERAL, container) for container in ephemeral_containers(pod))


def container_statuses(status: Object) -> Iterator[Object]:
    """What the status of a pod tells of each of its containers."""
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        yield from status.get(field) or ()


def is_sidecar(container: Object) -> bool:
    """Whether an init container runs on beside the others."""
    return container.get("restartPolicy") == "Always"


def on_host_network(pod: Object) -> bool:
    """Whether the pod has the node's own addresses."""
    return bool(pod["spec"].get("hostNetwork"))


def is_terminal(pod: Object) -> bool:
    """Whether the API shows a phase that nothing follows."""
    return pod.get("status", {}).get("phase") in {SUCCEEDED, FAILED}


def is_begun(pod: Object) -> bool:
    """Whether a node has taken the pod on."""
    return bool(pod.get("status", {}).get("startTime"))


def is_doomed(pod: Object) -> bool:
    """Whether somebody wants the pod to be gone."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_mirror(pod: Object) -> bool:
    """Whether the pod only shows a static one."""
    return _MIRROR in pod["metadata"].get("annotations", {})


def is_critical(pod: Object) -> bool:
    """Whether the node would not be one without the pod."""
    return is_mirror(pod) or priority(pod) >= CRITICAL_PRIORITY


def priority(pod: Object) -> int:
    """The pod's priority; 0 where it has none."""
    return int(pod["spec"].get("priority") or 0)


def is_of_job(pod: Object) -> bool:
    """Whether a Job waits for the pod to complete."""
    return any(owner.get("kind") == "Job" for owner in pod["metadata"].get("ownerReferences", ()))


def full_name(pod: Object) -> str:
    """The pod in kubelet's messages."""
    metadata = pod["metadata"]
    return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"


def moment(text: str) -> datetime:
    """A time as the API writes it."""
    return parse_time(text)


def doomed_since(pod: Object) -> datetime:
    """When the deletion was asked for."""
    return moment(pod["metadata"]["deletionTimestamp"]) - timedelta(seconds=deletion_grace_seconds(pod))


def deletion_grace_seconds(pod: Object) -> int:
    """How long a deleted pod may take to end."""
    return bounded(pod["metadata"].get("deletionGracePeriodSeconds"))


def wanted_grace_seconds(pod: Object) -> int:
    """How long a pod wants to be given to end."""
    return bounded(pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS))


def bounded(seconds: int | None) -> int:
    """Seconds that a clock can be moved by: the API takes any number."""
    return min(max(seconds or 0, 0), _MOST_SECONDS)
