"""fake-kubelet as users run it: a process of its own."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.ports import free_ports
from tests.cluster.process import Process

OPEN = "--legacy-flag-defaults"
"""Serves everybody, for those who ask without a name."""


def apart(directory: Path) -> list[str]:
    """Flags for one of many on a machine: a loopback port of its own, and a directory of its own for certificates."""
    port = free_ports(1)[0]
    return ["--address=127.0.0.1", f"--port={port}", f"--cert-dir={directory / 'pki'}"]


class AgentProcess(Process):
    """`fake-kubelet` with the given flags; start(), stop(), kill(), pid and log_text() are those of Process.

    Where they do not name a port, it gets one of its own.
    """

    def __init__(self, *flags: str, log: Path, env: Mapping[str, str] | None = None) -> None:
        if not any(flag.startswith("--port") for flag in flags):
            flags = (*apart(log.parent), *flags)
        # `-m agent` rather than the script beside the interpreter: it needs no installed entry point.
        super().__init__("fake-kubelet", [sys.executable, "-m", "agent", *flags], log=log, env=env)
