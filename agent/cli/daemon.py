"""The command line of the daemon: flags → Config → app.serve(). Only the other commands load typer."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agent import __version__, klog
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import Effective, from_flags
from agent.adapters.settings.pflag import parse_flags
from agent.adapters.settings.table import FLAGS
from agent.core.errors import ConfigError
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.text import printable

log = logging.getLogger(__name__)

COMPLETE = "_FAKE_KUBELET_COMPLETE"
COMMANDS = frozenset({"completion", "config", "demo", "fleet", "healthcheck", "install", "join", "uninstall"})


def main() -> None:
    """Run `fake-kubelet`: exits with 0 after a signal, with 1 for an error that a person must fix."""
    # With it set, every library that makes a TLS context would write the keys of our connections there.
    os.environ.pop("SSLKEYLOGFILE", None)
    klog.set_up(0)
    _end_on_sigterm_as_pid_1()
    flags: Mapping[str, Any] | None = {}
    try:
        flags = None if COMPLETE in os.environ else _daemon_flags(sys.argv[1:])
        if flags is None:
            _run_command()
        else:
            run_daemon(flags)
    except ConfigError as error:
        _report(error, is_daemon=flags is not None)
        sys.exit(1)
    except SystemExit as done:
        sys.exit(1 if done.code == 2 else done.code)  # a wrong flag: kubelet's code is 1


def _report(error: ConfigError, *, is_daemon: bool) -> None:
    """Write an error for a person; a daemon that nobody looks at has its line in the log, as kubelet."""
    hint = error.hint
    if is_daemon and not sys.stderr.isatty():
        log.error("command failed", {"err": error} | ({"hint": hint} if hint else {}))
    else:
        write_error(str(error), hint)


def write_error(message: str, hint: str = "") -> None:
    """Write an error for a person, and what to do about it; what of it is no text may come from a file."""
    lines = f"error: {message}\n" + (f"hint: {hint}\n" if hint else "")
    sys.stderr.write(printable(lines, keep="\n"))


def _end_on_sigterm_as_pid_1() -> None:
    """Let SIGTERM end PID 1 of a container before the daemon handles it; by default, the kernel ignores it there."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def _daemon_flags(arguments: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the flags if the line starts the daemon, None if it names a command or asks for help."""
    line = parse_flags(arguments, FLAGS, COMMANDS)
    return None if line.words or line.values.get("help") else line.values


def _run_command() -> None:
    klog.set_up(0, log_format="plain")
    from agent.cli.commands import UsageError, cli, usage_error  # noqa: PLC0415  typer: 4 MiB that a daemon would keep for good

    typed = None
    if COMPLETE in os.environ:  # a shell asks for completions
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415  for shells alone

        from agent.cli.completion import rewrite_typed  # noqa: PLC0415  as above

        completion_init()
        typed = rewrite_typed(os.environ)
    try:
        sys.exit(cli(prog_name="fake-kubelet", obj=typed, standalone_mode=False))
    except UsageError as error:
        raise usage_error(error) from error


def run_daemon(flags: Mapping[str, Any]) -> None:
    """Run the daemon, or print its version."""
    if flags.get("version") in {"true", "raw"}:
        python = f", Python {sys.version.split()[0]}" if flags["version"] == "raw" else ""
        # It begins as the kubelet's own line, which others parse.
        sys.stdout.write(f"Kubernetes {KUBELET_VERSION} (fake-kubelet {__version__}{python})\n")
    else:
        _serve(flags)


def _serve(flags: Mapping[str, Any]) -> None:
    settings = from_flags(flags)
    config = build_config(settings)
    from agent.adapters.child_process import prestart_key_worker  # noqa: PLC0415  for the daemon, not for --help
    from agent.adapters.settings.zpages import zpages  # noqa: PLC0415  as above
    from agent.adapters.systemd import Systemd  # noqa: PLC0415  as above

    pages = zpages(settings)
    set_up_logging(settings)
    for name, value in sorted(pages.flagz.items()):
        log.log(klog.V1, klog.Unquoted(f"FLAG: --{name}={klog.quoted(value)}"))
    manager = Systemd.from_environment()  # before any child could inherit it
    child = prestart_key_worker(config.process)  # before the imports that take longest
    with _no_collections():
        from agent.adapters.certificates.key_worker import KeyWorker  # noqa: PLC0415  for the daemon
        from agent.app import serve  # noqa: PLC0415  the Kubernetes client, too

    work = serve(
        config,
        reread_logging=lambda: set_up_logging(from_flags(flags)),
        keys=KeyWorker(child),
        manager=manager,
        zpages=pages,
    )
    run_async(work)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Let modules be imported without the search for garbage: what they define stays, and each search looks at it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run_async(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end. Raises ConfigError for a StartError: a person must fix both."""
    import asyncio  # noqa: PLC0415  too heavy for --help

    from agent.ports import StartError  # noqa: PLC0415  as asyncio

    try:
        asyncio.run(work)
    except StartError as error:
        raise ConfigError(str(error), hint=error.hint) from error


def set_up_logging(settings: Effective) -> None:
    """Apply the logging settings, and log the notes about all settings."""
    logging_config = settings.kubelet["logging"]
    vmodule = [(item["filePattern"], item["verbosity"]) for item in logging_config["vmodule"]]
    klog.set_up(logging_config["verbosity"], vmodule=vmodule, log_format=logging_config["format"])
    for note in settings.notes:
        level = logging.WARNING if note.verbosity < 0 else logging.INFO - note.verbosity
        log.log(level, note.phrase, note.fields)
