"""How long the containers of a pod run and how they end: by default as most do, otherwise as annotations say.

fake-kubelet.dev/run-for: 30s         all containers of the pod end after this time
fake-kubelet.dev/exit-code: "1"       … and with this code
fake-kubelet.dev/stop-after: 5s       how long they take to end after SIGTERM
run-for.fake-kubelet.dev/NAME, exit-code.fake-kubelet.dev/NAME: the same for one container
"""

from dataclasses import dataclass

from agent.core.model import Object
from agent.core.pods.accessors import INIT, MAIN, is_of_job, is_sidecar
from agent.core.times import parse_seconds

_DOMAIN = "fake-kubelet.dev"
_MOST_SECONDS = 10 * 365 * 24 * 3600.0  # longer than any pod lives

_LONGEST_VALUE = 64  # every container reads it again


@dataclass(frozen=True, slots=True)
class RunPlan:
    """How long a container runs, None for as long as its pod, and its exit code."""

    run_seconds: float | None
    exit_code: int


def run_plan(pod: Object, place: str, container: Object, *, job_seconds: float) -> RunPlan:
    """Return the plan of one container; an invalid annotation is ignored."""
    name = container["name"]
    default = None
    if place == INIT:
        default = None if is_sidecar(container) else 0.0
    elif place == MAIN and is_of_job(pod):
        default = job_seconds
    own = _seconds(_annotation(pod, f"run-for.{_DOMAIN}/{name}"))
    if own is None and place == MAIN:
        own = _seconds(_annotation(pod, f"{_DOMAIN}/run-for"))
    code = _code(_annotation(pod, f"exit-code.{_DOMAIN}/{name}"))
    if code is None and place == MAIN:
        code = _code(_annotation(pod, f"{_DOMAIN}/exit-code"))
    return RunPlan(default if own is None else own, code or 0)


def stop_seconds(pod: Object) -> float:
    """Return how long the containers take to end after SIGTERM."""
    return _seconds(_annotation(pod, f"{_DOMAIN}/stop-after")) or 0.0


def _annotation(pod: Object, key: str) -> str:
    text: str = pod["metadata"].get("annotations", {}).get(key, "")
    return text


def _seconds(text: str) -> float | None:
    try:
        return min(max(0.0, parse_seconds(text)), _MOST_SECONDS) if 0 < len(text) <= _LONGEST_VALUE else None
    except ValueError:
        return None


def _code(text: str) -> int | None:
    return int(text) if len(text) <= 3 and text.isascii() and text.isdecimal() else None
