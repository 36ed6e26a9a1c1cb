"""How a node is doing while somebody mistreats it: its renewals and its memory."""

from pathlib import Path

from tests.cluster import audit
from tests.cluster.control_plane import ControlPlane


def renewals(control_plane: ControlPlane, name: str) -> list[float]:
    """When the API server saw the node renew its lease."""
    return [moment.timestamp() for moment in audit.renewals(audit.requests_of(name, control_plane.audit_log))]


def resident_kib(pid: int, field: str = "VmRSS") -> int:
    """The memory of a process as the kernel counts it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
