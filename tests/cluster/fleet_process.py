"""`fake-kubelet fleet` as users run it: a process of its own."""

import subprocess
import sys
from pathlib import Path

from tests.cluster.process import Process

_FLEET = [sys.executable, "-m", "agent", "fleet"]


class FleetProcess(Process):
    """`fake-kubelet fleet` with the given flags; start(), stop(), kill() and log_text() are those of Process."""

    def __init__(self, *flags: str, log: Path) -> None:
        self._env = {"XDG_RUNTIME_DIR": str(log.parent)}
        super().__init__("fleet", [*_FLEET, *flags, "--healthz-port=0"], log=log, env=self._env)

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of `fleet`, such as scale, to its end."""
        return subprocess.run(
            [*_FLEET, *words], capture_output=True, text=True, check=False, timeout=120, env=self._env
        )
