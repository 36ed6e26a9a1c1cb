"""The files of the systemd service, and the service itself."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.adapters.certificates.files import write_whole
from agent.core.errors import ConfigError

USER = UNIT = "fake-kubelet"
STATE = Path("/var/lib/fake-kubelet")
FLAGS_FILE = STATE / "install-flags.env"
_UNIT_FILE = Path("/etc/systemd/system/fake-kubelet.service")
_SYSUSERS, _LOGIND = Path("/etc/sysusers.d/fake-kubelet.conf"), Path("/etc/systemd/logind.conf.d/50-fake-kubelet.conf")
_UNREADABLE = tuple(Path(name) for name in ("/home", "/root", "/run/user", "/tmp", "/var/tmp"))  # noqa: S108  to refuse
_COMMAND = "/usr/local/bin/fake-kubelet"  # as the unit has it
_RELOAD_LOGIND = ("systemctl", "kill", "--kill-who=main", "--signal=HUP", "systemd-logind.service")
_COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Shipped:
    """A file that comes with us, and where it belongs."""

    name: str
    target: Path
    is_setting: bool = False  # whether it is the user's once it is there

    def text(self, command: Path) -> str:
        """Its content, for the command at this place."""
        checkout = Path(__file__).parents[2] / self.name  # beside the package; a wheel has it among its data
        source = checkout if checkout.exists() else Path(sysconfig.get_path("data"), "share", UNIT, self.name)
        return source.read_text().replace(_COMMAND, str(command))


_FILES = (
    Shipped("systemd/fake-kubelet.sysusers", _SYSUSERS),
    Shipped("systemd/fake-kubelet.rules", Path("/etc/polkit-1/rules.d/50-fake-kubelet.rules")),
    Shipped("systemd/logind.conf", _LOGIND, is_setting=True),
    Shipped("systemd/fake-kubelet.service", _UNIT_FILE),
    Shipped("systemd/fake-kubelet.env", Path("/etc/default/fake-kubelet"), is_setting=True),
    Shipped("config/service.yaml", Path("/etc/fake-kubelet/config.yaml"), is_setting=True),
)


class Installation:
    """Puts the service on this machine, or takes it away, and says each thing that it does."""

    def __init__(self, *, say: Callable[[str], None], dry_run: bool, command: Path = Path(_COMMAND)) -> None:
        self._command = command
        self._say = say
        self._dry_run = dry_run
        self._changed: set[Path] = set()

    def write_files(self) -> None:
        """Write what comes with us; what the user changed is kept, and what is ours is brought up to date."""
        for file in _FILES:
            if file.target.parent.name == "rules.d" and not is_there(file.target.parent):
                self._say("no polkit here: without it, a shutdown of this machine will not wait for us")
            else:
                self._write(file)

    def make_user(self) -> None:
        """Have the user there that the service runs as, and the folder that it may write to."""
        self._run("systemd-sysusers", str(_SYSUSERS))
        if not STATE.is_dir() and not self._dry_run:
            STATE.mkdir(mode=0o700, parents=True)
            shutil.chown(STATE, USER, USER)

    def write_flags(self, text: str) -> None:
        """Keep the flags that the command line had for the daemon."""
        self._bring_up_to_date(FLAGS_FILE, text, mode=0o600)
        self.give(FLAGS_FILE)

    def give(self, *paths: Path) -> None:
        """Let the service have files that root made for it."""
        for path in paths:
            if path.is_relative_to(STATE) and path.exists() and not self._dry_run:
                shutil.chown(path, USER, USER)

    def start(self) -> None:
        """Enable the service, and have it run with what is there now; it is not waited for."""
        if _LOGIND in self._changed:
            self._run(*_RELOAD_LOGIND, may_fail=True)
        self._run("systemctl", "daemon-reload")
        self._run("systemctl", "enable", "--quiet", UNIT)
        self._run("systemctl", "restart" if self._changed else "start", "--no-block", UNIT)

    def state(self) -> tuple[str, str]:
        """`active` and the like, and what the service says of itself."""
        shown = self._run("systemctl", "show", "--property=ActiveState,StatusText", UNIT, may_fail=True)
        values = dict(line.partition("=")[::2] for line in shown.splitlines())
        return values.get("ActiveState", ""), values.get("StatusText", "")

    def remove(self, *, purge: bool) -> None:
        """Stop the service and remove it; settings that were changed, and what it wrote, only with `purge`."""
        if _content(_UNIT_FILE) is not None:
            self._run("systemctl", "disable", "--now", "--quiet", UNIT)
        for file in _FILES:
            found = _content(file.target)
            if found is not None and file.is_setting and not purge and found != file.text(self._command):
                self._say(f"kept {file.target}, which was changed; --purge removes it, too")
            elif found is not None:
                self._remove(file.target)
        if is_there(STATE) and purge:
            self._remove(STATE)
        elif is_there(STATE):
            self._say(f"kept {STATE} with the node's credentials; --purge removes it, too")
        if self._changed:
            self._run("systemctl", "daemon-reload")
        if _LOGIND in self._changed:
            self._run(*_RELOAD_LOGIND, may_fail=True)

    def _write(self, file: Shipped) -> None:
        text, before = file.text(self._command), _content(file.target)
        if file.is_setting and before is not None and before != text:
            self._say(f"kept {file.target}, which was changed")
        else:
            self._bring_up_to_date(file.target, text, mode=0o644)

    def _bring_up_to_date(self, target: Path, text: str, *, mode: int) -> None:
        before = _content(target)
        if before == text:
            return
        self._changed.add(target)
        old = "" if before is None else f"; what was there is {target}.old"
        self._say(f"{'would write' if self._dry_run else 'wrote'} {target}{old}")
        if self._dry_run:
            self._say("\n".join(f"    {line}" for line in text.splitlines()))
            return
        if before is not None:
            shutil.copy2(target, f"{target}.old")
        write_whole(target, text, mode=mode)

    def _remove(self, path: Path) -> None:
        self._changed.add(path)
        self._say(f"{'would remove' if self._dry_run else 'removed'} {path}")
        if self._dry_run:
            return
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def _run(self, *argv: str, may_fail: bool = False) -> str:
        """What a command prints; a ConfigError has what it complains about."""
        if self._dry_run:
            self._say(f"would run {' '.join(argv)}")
            return ""
        try:
            done = subprocess.run(  # noqa: S603  words of ours, not of a shell
                argv, capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"cannot run {argv[0]}: {error}") from error
        if done.returncode != 0 and not may_fail:
            raise ConfigError(f"`{' '.join(argv)}` failed: {done.stderr.strip()}")
        return done.stdout


def is_there(path: Path) -> bool:
    """Whether a file exists, as far as we may see."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _content(path: Path) -> str | None:
    """What is in a file; None if there is none, or none that we may read."""
    try:
        return path.read_text()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def check_machine() -> None:
    """A ConfigError where there is no service to be installed."""
    if os.geteuid() != 0:
        raise ConfigError("only root can do this; --dry-run shows to anyone what would be done")
    if not Path("/run/systemd/system").is_dir():
        raise ConfigError("systemd does not run this machine, so there is nothing to install a service with")


def command() -> Path:
    """The command that the service is to run: ours, in a place that the service can read."""
    called = Path(sys.argv[0])
    found = called.absolute() if called.name == UNIT else Path(sys.executable).absolute().with_name(UNIT)
    if not os.access(found, os.X_OK):
        raise ConfigError(f"there is no command {found}; install with the `fake-kubelet` that pip has made")
    for place in (found.resolve(), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()):
        if any(place.is_relative_to(hidden) for hidden in _UNREADABLE):
            raise ConfigError(
                f"the service could not read {place}; have fake-kubelet where all can read it, "
                "such as in a venv at /opt/fake-kubelet"
            )
    return found
