"""fake-kubelet as users run it: a process of its own."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.process import Process


class AgentProcess(Process):
    """`fake-kubelet` with the given flags; start(), stop(), kill(), pid and log_text() are those of Process."""

    def __init__(self, *flags: str, log: Path, env: Mapping[str, str] | None = None) -> None:
        # `-m agent` rather than the script beside the interpreter: it needs no installed entry point.
        super().__init__("fake-kubelet", [sys.executable, "-m", "agent", *flags], log=log, env=env)
