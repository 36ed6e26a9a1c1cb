"""Which containers are run again when they have ended."""

from agent.core.model import Object


def is_restarted(pod: Object, container: Object, exit_code: int | None, *, is_init: bool = False) -> bool:
    """Whether a container that ended with this code is run again; an init container only when it failed."""
    policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy") or "Always"
    if is_init and policy == "Always" and not container.get("restartPolicy"):
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
