"""The status of one container, and what happens to it next; started and ready are for its probes to say (life.py)."""

import hashlib
from datetime import datetime, timedelta

from agent.core.facts import timestamp
from agent.core.goduration import format_seconds
from agent.core.model import Object
from agent.core.pods.parts import moment
from agent.core.pods.script import Script

RUNTIME = "fake"  # as in the Node's containerRuntimeVersion
BACK_OFF = "CrashLoopBackOff"
_FIRST_BACK_OFF_SECONDS, _MOST_BACK_OFF_SECONDS = 10.0, 300.0
_MOST_RESTARTS = 2**31 - 1  # what the API has room for
_FORGIVEN_SECONDS = 600.0  # a container that ran for so long is not held back
_LOST = "The container could not be located when the pod was terminated"


def waiting(container: Object, reason: str) -> Object:
    """A container that has not been started yet."""
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


def started(before: Object, container: Object, uid: str, now: datetime) -> Object:
    """The container, running from now on; one that ran before is run again."""
    ended = _terminated(before) or before["lastState"].get("terminated")
    count = min(_restarts(before) + 1, _MOST_RESTARTS) if ended else _restarts(before)
    image = _tagged(container["image"])
    status = {
        "name": container["name"],
        "image": image,
        "imageID": _digest(image),
        "containerID": _identity(uid, container["name"], count),
        "lastState": {"terminated": ended} if ended else {},
        "ready": False,
        "restartCount": count,
        "state": {"running": {"startedAt": timestamp(now)}},
    }
    return _with_mounts(sized(status, container), container)


def sized(before: Object, container: Object) -> Object:
    """The container with what it asks for now: a resize is granted at once."""
    resources = container.get("resources") or {}
    told: Object = {"resources": {kind: resources[kind] for kind in ("limits", "requests") if resources.get(kind)}}
    if resources.get("requests"):
        told["allocatedResources"] = resources["requests"]
    return {**{name: value for name, value in before.items() if name != "allocatedResources"}, **told}


def dated(before: Object, now: datetime) -> Object:
    """The container with a start to count from: of one that runs since nobody knows when, that is now."""
    running = before["state"].get("running")
    if running is None or running.get("startedAt"):
        return before
    return {**before, "state": {"running": {"startedAt": timestamp(now)}}}


def ended(before: Object, at: datetime, exit_code: int) -> Object:
    """The container after it ended."""
    terminated = {
        "containerID": before.get("containerID", ""),
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": before["state"]["running"]["startedAt"],
        "finishedAt": timestamp(at),
    }
    return {**before, "ready": False, "state": {"terminated": terminated}}


def stopped(before: Object, at: datetime, exit_code: int) -> Object:
    """The container when its pod has ended: one that ran ends, one that was held back has ended as it did last."""
    if began := started_at(before):
        return ended(before, max(at, began), exit_code)
    if has_run(before) and is_waiting(before):
        return {**before, "state": before["lastState"], "lastState": {}}
    return before


def accounted_for(before: Object) -> Object:
    """The container when its pod has ended; nobody can tell what became of one that still waits."""
    if not is_waiting(before):
        return before
    terminated = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": _LOST}
    terminated |= {"startedAt": None, "finishedAt": None}
    return {**before, "ready": False, "state": {"terminated": terminated}}


def held_back(before: Object, pod_name: str) -> Object:
    """A container that waits for its next try."""
    told = format_seconds(_back_off_seconds(before))
    message = f"back-off {told} restarting failed container={before['name']} pod={pod_name}"
    return {
        **before,
        "ready": False,
        "lastState": before["state"],
        "state": {"waiting": {"reason": BACK_OFF, "message": message}},
    }


def run_end(status: Object, script: Script) -> datetime | None:
    """When a running container ends by itself."""
    began = started_at(status)
    return None if began is None or script.run_seconds is None else began + timedelta(seconds=script.run_seconds)


def started_at(status: Object) -> datetime | None:
    """Since when a container runs; None while it does not."""
    running = status["state"].get("running")
    return moment(running["startedAt"]) if running else None


def exit_code(status: Object) -> int | None:
    """How a container ended; None while it has not, or will be run again."""
    terminated = _terminated(status)
    return None if terminated is None else int(terminated["exitCode"])


def has_run(status: Object) -> bool:
    """Whether a container was ever started."""
    return not is_waiting(status) or "terminated" in status["lastState"]


def is_waiting(status: Object) -> bool:
    """Whether a container neither runs nor has ended; one that the API tells nothing about waits, too."""
    return "running" not in status["state"] and "terminated" not in status["state"]


def back_off_end(status: Object) -> datetime | None:
    """Until when an ended container is held back; None where its end is not known."""
    ended = _terminated(status) or status["lastState"]["terminated"]
    if not ended.get("finishedAt"):
        return None
    return moment(ended["finishedAt"]) + timedelta(seconds=_back_off_seconds(status))


def _back_off_seconds(status: Object) -> float:
    """How long after its end a container is held back: not the first time, then ever longer."""
    ended = _terminated(status) or status["lastState"]["terminated"]
    if not _restarts(status) or not ended.get("startedAt"):
        return 0.0
    if moment(ended["finishedAt"]) - moment(ended["startedAt"]) > timedelta(seconds=_FORGIVEN_SECONDS):
        return 0.0
    doublings = min(_restarts(status) - 1, 10)
    return float(min(_FIRST_BACK_OFF_SECONDS * 2**doublings, _MOST_BACK_OFF_SECONDS))


def _restarts(status: Object) -> int:
    """How often a container was run again; the API takes numbers below zero, which would be counted up from at once."""
    return max(0, int(status["restartCount"]))


def _terminated(status: Object) -> Object | None:
    found: Object | None = status["state"].get("terminated")
    return found


def _with_mounts(status: Object, container: Object) -> Object:
    mounts = [_mount(mount) for mount in container.get("volumeMounts") or ()]
    return {**status, "volumeMounts": mounts} if mounts else status


def _mount(mount: Object) -> Object:
    told = {"name": mount["name"], "mountPath": mount["mountPath"]}
    return {**told, "readOnly": True, "recursiveReadOnly": "Disabled"} if mount.get("readOnly") else told


def _tagged(image: str) -> str:
    """The image with the tag that kubelet adds where there is none."""
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"


def _digest(image: str) -> str:
    """A reference by digest, the same one for the same image."""
    if "@" in image:
        return image
    return f"{image.rpartition(':')[0]}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _identity(uid: str, name: str, count: int) -> str:
    return f"{RUNTIME}://{hashlib.sha256(f'{uid}/{name}/{count}'.encode()).hexdigest()}"
