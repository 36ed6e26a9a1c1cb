"""How a node is doing while somebody mistreats it: its renewals and its memory."""

import json
from datetime import datetime
from pathlib import Path

from tests.cluster.control_plane import ControlPlane


def renewals(control_plane: ControlPlane, name: str) -> list[float]:
    """When the API server saw the node renew its lease."""
    events = map(json.loads, control_plane.audit_log.read_text().splitlines())
    mine = (e for e in events if e["verb"] == "update" and (e.get("objectRef") or {}).get("name") == name)
    return [datetime.fromisoformat(e["requestReceivedTimestamp"]).timestamp() for e in mine]


def resident_kib(pid: int, field: str = "VmRSS") -> int:
    """The memory of a process as the kernel counts it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
