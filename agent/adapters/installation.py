"""The files of the systemd service, and the service itself."""

import os
import pwd
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.adapters.certificates.files import write_whole
from agent.adapters.privileges import run_as
from agent.core.errors import ConfigError
from agent.core.text import one_line, printable

USER = UNIT = "fake-kubelet"
STATE = Path("/var/lib/fake-kubelet")  # the service's user owns it: root opens nothing below, and changes nothing
FLAGS_FILE = Path("/etc/fake-kubelet/install-flags.env")
_FORMER_FLAGS_FILE = STATE / "install-flags.env"  # of an earlier version; the service's user may write it
_UNIT_FILE = Path("/etc/systemd/system/fake-kubelet.service")
_SYSUSERS, _LOGIND = Path("/etc/sysusers.d/fake-kubelet.conf"), Path("/etc/systemd/logind.conf.d/50-fake-kubelet.conf")
_HIDDEN = {  # what the unit's settings hide from the service
    "ProtectHome": tuple(map(Path, ("/home", "/root", "/run/user"))),
    "PrivateTmp": tuple(map(Path, ("/tmp", "/var/tmp"))),  # noqa: S108  to refuse
}
_COMMAND = "/usr/local/bin/fake-kubelet"  # as the unit has it
_PACKAGE = Path(__file__).parents[1]
_RELOAD_LOGIND = ("systemctl", "kill", "--kill-who=main", "--signal=HUP", "systemd-logind.service")
_COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Shipped:
    """A file of this package, and where it is installed."""

    name: str
    target: Path
    is_setting: bool = False  # whether it is the user's once it is there

    def text(self, command: Path) -> str:
        """Return the content, with the path of the command in it."""
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
    """Installs the service on this machine, or removes it, and prints each step."""

    def __init__(self, *, say: Callable[[str], None], dry_run: bool, command: Path = Path(_COMMAND)) -> None:
        self._command = command
        self._say = say
        self._dry_run = dry_run
        self._changed: set[Path] = set()

    def write_files(self) -> None:
        """Write the files of the service; settings that the user changed are kept, other files are updated."""
        for file in _FILES:
            if file.target.parent.name == "rules.d" and not is_there(file.target.parent):
                self._say("no polkit here: without it, a shutdown of this machine will not wait for us")
            else:
                self._write(file)

    def check_former_flags(self, *, has_flags: bool) -> None:
        """Report flags that an earlier version kept where the service's user may change them; they are not read.

        A ConfigError if this installation would replace a unit that still reads them, and has no flags instead.
        """
        if not is_there(_FORMER_FLAGS_FILE) or is_there(FLAGS_FILE):
            return
        if not has_flags and str(_FORMER_FLAGS_FILE) in (_content(_UNIT_FILE) or ""):
            raise ConfigError(
                f"the flags in {_FORMER_FLAGS_FILE} would be lost: the service's user may have changed them, so they "
                "are no longer read",
                hint="check them and give those that you want to `fake-kubelet install` once more; "
                "if you want none, remove that file",
            )
        self._say(f"{_FORMER_FLAGS_FILE} is no longer read: the flags are in {FLAGS_FILE} now")

    def make_user(self) -> None:
        """Create the user that the service runs as, and have systemd create its directory, as before each start."""
        self._run("systemd-sysusers", str(_SYSUSERS))
        directory = (f"--property=StateDirectory={STATE.name}", "--property=StateDirectoryMode=0700")
        self._run("systemd-run", "--quiet", "--collect", "--wait", f"--property=User={USER}", *directory, "true")

    def write_flags(self, text: str) -> None:
        """Keep the flags that the command line had for the daemon."""
        self._update(FLAGS_FILE, text, mode=0o600)

    def start(self) -> None:
        """Enable the service, and have it run with what is there now; it is not waited for."""
        if _LOGIND in self._changed:
            self._run(*_RELOAD_LOGIND, may_fail=True)
        self._run("systemctl", "daemon-reload")
        self._run("systemctl", "enable", "--quiet", UNIT)
        self._run("systemctl", "restart" if self._changed else "start", "--no-block", UNIT)

    def state(self) -> tuple[str, str]:
        """Return systemd's state of the service, such as `active`, and the status text of the service."""
        shown = self._run("systemctl", "show", "--property=ActiveState,StatusText", UNIT, may_fail=True)
        values = dict(line.partition("=")[::2] for line in shown.splitlines())
        return values.get("ActiveState", ""), printable(values.get("StatusText", ""))

    def remove(self, *, purge: bool) -> None:
        """Stop the service and remove it; settings that were changed, and what it wrote, only with `purge`."""
        if _content(_UNIT_FILE) is not None:
            self._run("systemctl", "disable", "--now", "--quiet", UNIT)
        for file in _FILES:
            content = _content(file.target)
            if content is not None and file.is_setting and not purge and content != file.text(self._command):
                self._say(f"kept {file.target}, which was changed; --purge removes it, too")
            elif content is not None:
                self._remove(file.target)
        for path in filter(is_there, (FLAGS_FILE, _old(FLAGS_FILE)) if purge else ()):
            self._remove(path)
        if self._changed:
            self._run("systemctl", "daemon-reload")
        if _LOGIND in self._changed:
            self._run(*_RELOAD_LOGIND, may_fail=True)
        if is_there(STATE) and purge:
            self._remove_state()
        elif is_there(STATE):
            self._say(f"kept {STATE} with the node's credentials, and the flags; --purge removes them, too")

    def _write(self, file: Shipped) -> None:
        text, before = file.text(self._command), _content(file.target)
        if file.is_setting and before is not None and before != text:
            self._say(f"kept {file.target}, which was changed")
        else:
            self._update(file.target, text, mode=0o644)

    def _update(self, target: Path, text: str, *, mode: int) -> None:
        before = _content(target)
        if before == text:
            return
        self._changed.add(target)
        old = "" if before is None else f"; what was there is {_old(target)}"
        self._say(f"{'would write' if self._dry_run else 'wrote'} {target}{old}")
        if self._dry_run:
            self._say("\n".join(f"    {line}" for line in text.splitlines()))
            return
        if before is not None:
            write_whole(_old(target), before, mode=mode)
        write_whole(target, text, mode=mode)

    def _remove(self, path: Path) -> None:
        self._changed.add(path)
        self._say(f"{'would remove' if self._dry_run else 'removed'} {path}")
        if not self._dry_run:
            path.unlink()

    def _remove_state(self) -> None:
        """Remove the state directory. Its owner removes what is in it: with the rights of root it might be more."""
        verb = "would remove" if self._dry_run else "removed"
        if STATE.is_symlink():
            self._say(f"{verb} {STATE}, which is a link; kept what is in {printable(str(STATE.readlink()))}")
            if not self._dry_run:
                STATE.unlink()
            return
        owner, command = STATE.lstat(), ("find", str(STATE), "-mindepth", "1", "-delete")
        if not self._dry_run:
            run_as(owner.st_uid, owner.st_gid, lambda: self._run(*command), seconds=2 * _COMMAND_SECONDS)
            STATE.rmdir()
        self._say(f"{verb} {STATE}")

    def _run(self, *argv: str, may_fail: bool = False) -> str:
        """Run a command and return what it prints. Raises ConfigError with its stderr if it fails."""
        if self._dry_run:
            self._say(f"would run {' '.join(argv)}")
            return ""
        try:
            done = subprocess.run(  # noqa: S603  words of ours, not of a shell
                argv, capture_output=True, text=True, errors="replace", check=False, timeout=_COMMAND_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"cannot run {argv[0]}: {error}") from error
        if done.returncode != 0 and not may_fail:
            raise ConfigError(f"`{' '.join(argv)}` failed: {one_line(done.stderr)}")
        return done.stdout


def is_there(path: Path) -> bool:
    """Whether there is a file or a link of this name, in folders that we may read."""
    return os.path.lexists(path)


def _old(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")


def _content(path: Path) -> str | None:
    """Return the content of a file; None if we cannot read any, empty for a link, a FIFO and the like.

    Not all folders are root's alone: polkit's may be those of its own user.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError:
        return ""
    try:
        about = os.fstat(descriptor)
        is_plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
        return os.read(descriptor, about.st_size).decode(errors="replace") if is_plain else ""
    finally:
        os.close(descriptor)


def as_service_user(action: Callable[[], str], *, seconds: float) -> str:
    """Run `action` with the rights of the service and return what it returns; a ConfigError says why it failed."""
    account = pwd.getpwnam(USER)
    return run_as(account.pw_uid, account.pw_gid, action, seconds=seconds)


def check_owners(*commands: Path) -> None:
    """Raise ConfigError if the service's user may replace what root is going to read, write or run."""
    account = _account()
    places = {
        part for path in (*commands, FLAGS_FILE, *(file.target for file in _FILES)) for part in _with_parents(path)
    }

    def find() -> str:
        return next((str(place) for place in sorted(places) if _is_ours(place)), "")

    if place := run_as(account.pw_uid, account.pw_gid, find, seconds=_COMMAND_SECONDS):
        raise ConfigError(f"the user {account.pw_name} may change {place}, which root relies on; give it to root alone")


def _account() -> pwd.struct_passwd:
    """Return the service's user; nobody, who may do no more, before there is one."""
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        return pwd.getpwnam("nobody")


def _with_parents(path: Path) -> set[Path]:
    """Return a file and every folder above it, also those of the target of a link."""
    real = path.resolve()
    return {path, *path.parents, real, *real.parents}


def _is_ours(path: Path) -> bool:
    """Whether this process may change a file or what is in a folder, or could allow itself to."""
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    is_shared = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX  # as /tmp: to each what is his own
    return about.st_uid == os.geteuid() or (os.access(path, os.W_OK) and not is_shared)


def check_machine() -> None:
    """Raise ConfigError if no service can be installed: without root, or without systemd."""
    if os.geteuid() != 0:
        raise ConfigError("only root can do this", hint="--dry-run shows to anyone what would be done")
    if not Path("/run/systemd/system").is_dir():
        raise ConfigError("systemd does not run this machine, so there is nothing to install a service with")


def command() -> Path:
    """Return the command that the service will run. Raises ConfigError if the service cannot see it."""
    called = Path(sys.argv[0])
    path = called.absolute() if called.name == UNIT else Path(sys.executable).absolute().with_name(UNIT)
    if not os.access(path, os.X_OK):
        raise ConfigError(f"there is no command {path}", hint="install with the `fake-kubelet` that pip has made")
    for place in _parts(path):
        if setting := hiding_setting(place, _unit_properties):
            raise ConfigError(f"the service could not see {place}: its unit has {setting}=yes", hint=_elsewhere())
    return path


def check_readable(path: Path) -> None:
    """Raise ConfigError if the service's user has no right to read the command or what belongs to it."""
    account = _account()

    def find() -> str:
        return next((str(part) for part in _parts(path) if not os.access(part, os.R_OK | os.X_OK)), "")

    if place := run_as(account.pw_uid, account.pw_gid, find, seconds=_COMMAND_SECONDS):
        raise ConfigError(f"the service could not read {place}: the user {account.pw_name} may not", hint=_elsewhere())


def _parts(path: Path) -> Sequence[Path]:
    """Return a command and what it needs: its virtual environment, its Python, and this package, perhaps a checkout."""
    return [part.resolve() for part in (path, Path(sys.prefix), Path(sys.base_prefix), _PACKAGE)]


def _elsewhere() -> str:
    source = _PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").exists() else UNIT
    venv = f"/opt/{UNIT}"
    return (
        f"have it where all can read it: `python3 -m venv {venv} && {venv}/bin/pip install {source}`, "
        f"then `{venv}/bin/{UNIT} install`"
    )


def hiding_setting(place: Path, unit_properties: Callable[[], Mapping[str, str]]) -> str:
    """Return the setting that hides a place from the service; empty if it can see it, perhaps by a drop-in."""
    for setting, folders in _HIDDEN.items():
        if any(place.is_relative_to(folder) for folder in folders):
            unit = unit_properties()
            is_off = unit.get(setting) in {"no", "read-only"}
            bound = f"{unit.get('BindPaths', '')} {unit.get('BindReadOnlyPaths', '')}".split()
            if not is_off and not any(place.is_relative_to(mount.split(":")[1]) for mount in bound if ":" in mount):
                return setting
    return ""


def _unit_properties() -> Mapping[str, str]:
    """Return what systemd says of the service that is installed already, with its drop-ins; empty if there is none."""
    names = ("LoadState", *_HIDDEN, "BindPaths", "BindReadOnlyPaths")
    argv = ("systemctl", "show", f"--property={','.join(names)}", UNIT)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_COMMAND_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return {}
    properties = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    return properties if properties.get("LoadState") == "loaded" else {}
