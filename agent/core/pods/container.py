"""The status of one container and its transitions; lifecycle.py sets `started` and `ready`, as its probes would."""

import hashlib
from datetime import datetime, timedelta

from agent.core.model import Container, ContainerStatus, ContainerTerminated, Object, PodObject, ResourceRequirements
from agent.core.pods.termination import RunPlan
from agent.core.times import format_seconds, parse_time, timestamp

RUNTIME = "fake"  # as in the Node's containerRuntimeVersion
BACK_OFF = "CrashLoopBackOff"
_FIRST_BACK_OFF_SECONDS, _MOST_BACK_OFF_SECONDS = 10.0, 300.0
_MOST_RESTARTS = 2**31 - 1  # an int32 in the API
_FORGIVEN_SECONDS = 600.0  # after a run of this length a container restarts at once
_LOST = "The container could not be located when the pod was terminated"


def waiting(container: Container, reason: str) -> ContainerStatus:
    """Return the status of a container that has not started yet."""
    return _with_mounts(
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": reason}},
        },
        container,
    )


def started(before: ContainerStatus, container: Container, uid: str, now: datetime) -> ContainerStatus:
    """Return the status of a container that starts now; a container that ran before is restarted."""
    ended = _terminated(before) or before["lastState"].get("terminated")
    count = min(_restarts(before) + 1, _MOST_RESTARTS) if ended else _restarts(before)
    image = _tagged(container["image"])
    status: ContainerStatus = {
        "name": container["name"],
        "image": image,
        "imageID": _digest(image),
        "containerID": f"{RUNTIME}://{container_key(uid, container['name'], count)}",
        "lastState": {"terminated": ended} if ended else {},
        "ready": False,
        "restartCount": count,
        "state": {"running": {"startedAt": timestamp(now)}},
    }
    return _with_mounts(with_resources(status, container), container)


def with_resources(before: ContainerStatus, container: Container) -> ContainerStatus:
    """Return the status with the resources of the spec: a resize takes effect at once."""
    resources: ResourceRequirements = container.get("resources") or {}
    status: ContainerStatus = {**before, "resources": {}}
    status.pop("allocatedResources", None)
    if resources.get("limits"):
        status["resources"]["limits"] = resources["limits"]
    if resources.get("requests"):
        status["resources"]["requests"] = status["allocatedResources"] = resources["requests"]
    return status


def with_start(before: ContainerStatus, now: datetime) -> ContainerStatus:
    """Return the status with a start time: now, for a running container whose status has none."""
    running = before["state"].get("running")
    if running is None or running.get("startedAt"):
        return before
    return {**before, "state": {"running": {"startedAt": timestamp(now)}}}


def ended(before: ContainerStatus, at: datetime, exit_code: int) -> ContainerStatus:
    """Return the status of a running container that ends."""
    terminated: ContainerTerminated = {
        "containerID": before.get("containerID", ""),
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": before["state"]["running"]["startedAt"],
        "finishedAt": timestamp(at),
    }
    return {**before, "ready": False, "state": {"terminated": terminated}}


def stopped(before: ContainerStatus, at: datetime, exit_code: int) -> ContainerStatus:
    """Return the status when the pod ends: a running container ends, one that backs off keeps its last end."""
    if began := started_at(before):
        return ended(before, max(at, began), exit_code)
    if has_run(before) and is_waiting(before):
        return {**before, "state": before["lastState"], "lastState": {}}
    return before


def with_unknown_end(before: ContainerStatus) -> ContainerStatus:
    """Return the status when the pod has ended; the end of a container that still waits is unknown."""
    if not is_waiting(before):
        return before
    terminated: ContainerTerminated = {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": _LOST,
        "startedAt": None,
        "finishedAt": None,
    }
    return {**before, "ready": False, "state": {"terminated": terminated}}


def backing_off(before: ContainerStatus, pod_name: str) -> ContainerStatus:
    """Return the status of a container that waits for its next restart."""
    delay = format_seconds(_backoff_seconds(before))
    message = f"back-off {delay} restarting failed container={before['name']} pod={pod_name}"
    return {
        **before,
        "ready": False,
        "lastState": before["state"],
        "state": {"waiting": {"reason": BACK_OFF, "message": message}},
    }


def run_end(status: ContainerStatus, plan: RunPlan) -> datetime | None:
    """Return when a running container ends by itself; None means never."""
    began = started_at(status)
    return None if began is None or plan.run_seconds is None else began + timedelta(seconds=plan.run_seconds)


def started_at(status: ContainerStatus) -> datetime | None:
    """Return since when a container runs; None while it does not."""
    running = status["state"].get("running")
    return parse_time(running["startedAt"]) if running else None


def exit_code(status: ContainerStatus) -> int | None:
    """Return the exit code of an ended container; None while it runs or waits."""
    terminated = _terminated(status)
    return None if terminated is None else int(terminated["exitCode"])


def has_run(status: ContainerStatus) -> bool:
    """Return whether a container was ever started."""
    return not is_waiting(status) or "terminated" in status["lastState"]


def is_waiting(status: ContainerStatus) -> bool:
    """Return whether a container neither runs nor has ended; a container with an empty state waits, too."""
    return "running" not in status["state"] and "terminated" not in status["state"]


def should_restart(pod: PodObject, container: Container, exit_code: int | None, *, is_init: bool = False) -> bool:
    """Return whether a container that ended with this code is restarted; an init container only after a failure."""
    policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy") or "Always"
    if is_init and policy == "Always" and not container.get("restartPolicy"):
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def backoff_end(status: ContainerStatus) -> datetime | None:
    """Return until when an ended container backs off; None where its end is unknown."""
    ended = _terminated(status) or status["lastState"]["terminated"]
    finished_at = ended.get("finishedAt")
    if not finished_at:
        return None
    return parse_time(finished_at) + timedelta(seconds=_backoff_seconds(status))


def _backoff_seconds(status: ContainerStatus) -> float:
    """Return how long a container backs off after its end: not at all the first time, then ever longer."""
    ended = _terminated(status) or status["lastState"]["terminated"]
    began, finished_at = ended.get("startedAt"), ended.get("finishedAt")
    if not _restarts(status) or not began or not finished_at:
        return 0.0
    if parse_time(finished_at) - parse_time(began) > timedelta(seconds=_FORGIVEN_SECONDS):
        return 0.0
    doublings = min(_restarts(status) - 1, 10)
    return float(min(_FIRST_BACK_OFF_SECONDS * 2**doublings, _MOST_BACK_OFF_SECONDS))


def _restarts(status: ContainerStatus) -> int:
    """Return the restart count; the API accepts negative numbers, which count as none."""
    return max(0, int(status["restartCount"]))


def _terminated(status: ContainerStatus) -> ContainerTerminated | None:
    return status["state"].get("terminated")


def _with_mounts(status: ContainerStatus, container: Container) -> ContainerStatus:
    mounts = [_mount(mount) for mount in container.get("volumeMounts") or ()]
    return {**status, "volumeMounts": mounts} if mounts else status


def _mount(mount: Object) -> Object:
    status = {"name": mount["name"], "mountPath": mount["mountPath"]}
    return {**status, "readOnly": True, "recursiveReadOnly": "Disabled"} if mount.get("readOnly") else status


def _tagged(image: str) -> str:
    """Return the image with the tag that kubelet adds where there is none."""
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"


def _digest(image: str) -> str:
    """Return a reference by digest, always the same for the same image."""
    if "@" in image:
        return image
    return f"{image.rpartition(':')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def container_key(uid: str, name: str, restarts: int) -> str:
    """Return the ID by which the runtime would know one run of a container."""
    return hashlib.sha256(f"{uid}/{name}/{restarts}".encode()).hexdigest()
