"""A Debian machine with systemd as its first process, in a network namespace and a control group of its own."""

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.cluster.command import CommandFailed, run
from tests.cluster.island import ADDRESS, Island
from tests.cluster.process import Process
from tests.cluster.proxy import FaultProxy
from tests.cluster.waiting import eventually
from tests.systemd.overlay import layer

# nspawn's own end is not the end of the machine, but that of a process namespace is the end of all in it.
_CAGE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_CGROUPS = Path("/sys/fs/cgroup")
_ENVIRONMENT = ("env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "TERM=dumb", "LC_ALL=C.UTF-8")


class Machine:
    """Boots from layers that stay as they are; what it writes itself is there again at the next boot."""

    def __init__(self, name: str, layers: Sequence[Path], directory: Path, *, api_port: int) -> None:
        self.name = f"{name}-{secrets.token_hex(3)}"
        self.root = directory / "root"
        self._layers, self._directory, self._api_port = layers, directory, api_port
        self._life = ExitStack()
        self._island: Island | None = None
        self._nspawn: Process | None = None
        self._leader = 0
        # nspawn makes `payload` and `supervisor` in the group it is in: two machines would be in each other's.
        self._groups = [top / self.name for top in _hierarchies()]

    def __enter__(self) -> Self:
        with ExitStack() as life:
            life.enter_context(layer(self._directory, self._layers))
            self.write("/etc/hostname", f"{self.name}\n")
            self.write("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {self.name}\n")
            self._island = life.enter_context(Island(self._api_port))
            for group in self._groups:
                group.mkdir()
                life.callback(_remove, group)
            self._life = life.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut_power()
        self._life.close()

    @property
    def is_on(self) -> bool:
        """Whether it was booted and has not ended."""
        return self._nspawn is not None and self._nspawn.running

    @property
    def wire(self) -> FaultProxy:
        """The way to the API server, to be cut."""
        assert self._island is not None
        return self._island.wire

    def boot(self) -> None:
        """Switch it on; return when systemd has started everything, well or not."""
        assert self._island is not None
        options = ["--quiet", "--boot", f"--directory={self.root}", f"--machine={self.name}", "--register=no"]
        options += [
            "--keep-unit",
            "--link-journal=no",
            f"--network-namespace-path={self._island.path}",
        ]
        options += ["--console=read-only", "--resolv-conf=off", "--timezone=off"]
        enter = "; ".join(f"echo $$ > {group}/cgroup.procs" for group in self._groups)
        argv = ["sh", "-ec", f'{enter}; exec "$@"', "sh", *_CAGE, "systemd-nspawn", *options, "systemd.show_status=0"]
        env = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        self._nspawn = Process("systemd-nspawn", argv, log=self._directory / "console.log", env=env)
        self._nspawn.start()
        self._leader = eventually(self._find_leader, every=0.05)
        eventually(lambda: self._state() in {"running", "degraded"})

    def run(self, *argv: str, check: bool = True) -> str:
        """What a command of root prints there."""
        return run(["nsenter", "--target", str(self._leader), "--all", "--", *_ENVIRONMENT, *argv], check=check)

    def succeeds(self, *argv: str) -> bool:
        """Whether a command of root ends well there."""
        try:
            self.run(*argv)
        except CommandFailed:
            return False
        return True

    def write(self, path: str, text: str) -> None:
        """Put a file there."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def wait_until_off(self, within: float = 240.0) -> None:
        """Return when it has powered itself off."""
        assert self._nspawn is not None
        self._nspawn.wait(within)
        self._nspawn = None

    def cut_power(self) -> None:
        """Switch it off without any warning."""
        if self._nspawn is not None:
            self._nspawn.kill()
            self._nspawn = None
            eventually(lambda: not Path(f"/proc/{self._leader}").exists(), every=0.01)

    def _find_leader(self) -> int:
        """The machine's PID 1 as the host sees it; an earlier child of nspawn goes away."""
        assert self._nspawn is not None
        assert self._nspawn.running, self._nspawn.log_text()
        found = [pid for nspawn in _children(self._nspawn.pid) for pid in _children(nspawn)]
        return next((pid for pid in found if Path(f"/proc/{pid}/comm").read_text() == "systemd\n"), 0)

    def _state(self) -> str:
        return self.run("systemctl", "is-system-running", check=False).strip()


def _hierarchies() -> list[Path]:
    """Where systemd has control groups: in that of version 2, and in its own of version 1 where both are there."""
    return [top for top in (_CGROUPS, _CGROUPS / "unified", _CGROUPS / "systemd") if (top / "cgroup.procs").exists()]


def _remove(group: Path) -> None:
    """Remove a control group with those in it, as soon as the last process has left them."""

    def is_gone() -> bool:
        for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        group.rmdir()
        return True

    eventually(is_gone, every=0.05)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
