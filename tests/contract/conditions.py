"""Conditions of nodes, for all who need one."""


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    """A node condition with fixed times."""
    times = {"lastHeartbeatTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    return {"type": kind, "status": status, "reason": "Because", "message": "told", **times, **more}
