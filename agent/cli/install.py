"""`fake-kubelet install` and `uninstall`: this machine as a node, by a systemd service."""

import logging
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from agent import klog
from agent.adapters import installation
from agent.adapters.installation import STATE, UNIT, Installation, as_service_user
from agent.adapters.settings.effective import Effective, effective
from agent.adapters.settings.node_config import node_config
from agent.adapters.settings.pflag import parse_flags
from agent.adapters.settings.table import OURS, Flag
from agent.cli.join import CLIENT_CA, FLAGS_OF_JOIN, JoinCommand, Places, Wish, split, wanted
from agent.core.errors import ConfigError

_ROWS = (
    Flag("join", "string", OURS, "Join the cluster of this API server, with join's flags.", metavar="HOST:PORT"),
    Flag("dry-run", "bool", OURS, "Only print what would be done."),
)
FLAGS_OF_INSTALL = {flag.name: flag for flag in _ROWS} | FLAGS_OF_JOIN
_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_READ_SECONDS = 30.0


class InstallCommand(JoinCommand):
    """Its own flags and join's; all others are the daemon's."""

    rows = tuple(FLAGS_OF_INSTALL.values())


def install(arguments: Sequence[str]) -> None:
    """Write unit, settings and user, join if asked to, and start the service; a second time, only what differs."""
    words, daemon = split(arguments, FLAGS_OF_INSTALL)
    line = parse_flags(words, FLAGS_OF_INSTALL)
    if line.words:
        raise ConfigError(f"unexpected argument {line.words[0]}; to join a cluster, say --join {line.words[0]}")
    wish = _wish(line.values)
    if "node-name" in line.values:
        daemon = [*daemon, f"--hostname-override={line.values['node-name']}"]
    settings, dry_run = effective(daemon), bool(line.values.get("dry-run"))
    name = node_config(settings).node_name
    places = _places(settings, is_joining=wish is not None)
    command = installation.command()
    if not dry_run:
        installation.check_machine()
        installation.check_owners(command, Path(sys.prefix), Path(sys.base_prefix), Path(installation.__file__))
        os.umask(0o022)  # the service has to read what root writes
    work = Installation(say=typer.echo, dry_run=dry_run, command=command)
    work.check_former_flags(has_flags=bool(daemon or wish))
    try:
        work.write_files()
        work.make_user()
        if wish and not dry_run:
            _join(wish, places, name, settings)
        if daemon or wish:
            work.write_flags(environment_line("KUBELET_KUBEADM_ARGS", [*daemon, *_authority(wish, places, settings)]))
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
    has_credentials = any(map(installation.is_there, (places.kubeconfig, places.bootstrap)))
    _start(work, dry_run=dry_run, has_credentials=has_credentials)


def uninstall(*, dry_run: bool, purge: bool) -> None:
    """Stop the service and remove what `install` has written, as far as it is not the user's."""
    if not dry_run:
        installation.check_machine()
        installation.check_owners()
    try:
        Installation(say=typer.echo, dry_run=dry_run).remove(purge=purge)
    except OSError as error:
        raise ConfigError(f"cannot remove {error.filename}: {error.strerror}") from error
    typer.echo(f"The user {installation.USER} stays, and so does the Node: kubectl delete node NAME removes it.")


def environment_line(name: str, words: Sequence[str]) -> str:
    """An environment file that systemd splits into these words again."""
    text = shlex.join(words).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return f'{name}="{text}"\n'


def _wish(flags: Mapping[str, Any]) -> Wish | None:
    asks = flags.keys() & (FLAGS_OF_JOIN.keys() | {"join"}) - {"node-name"}
    return wanted([flags["join"]] if "join" in flags else [], flags) if asks else None


def _authority(wish: Wish | None, places: Places, settings: Effective) -> Sequence[str]:
    """The flag for the cluster's authority, which a cluster that was joined has told."""
    is_known = wish or installation.is_there(places.authority)
    return () if CLIENT_CA in settings.origins or not is_known else (f"--client-ca-file={places.authority}",)


def _places(settings: Effective, *, is_joining: bool) -> Places:
    """Where the service has its credentials; a CA file that root named is root's, and has to be there already."""
    places = Places.of(settings, folder=STATE)
    if not is_joining or CLIENT_CA not in settings.origins:
        return places
    if not places.authority.exists():
        raise ConfigError(f"there is no {places.authority}; without --client-ca-file, the CA that is found is taken")
    return replace(places, authority=STATE / "pki" / "ca.crt")


def _join(wish: Wish, places: Places, name: str, settings: Effective) -> None:
    """Join with the rights of the service: root must not be misled by what is in the service's directory."""
    import asyncio  # noqa: PLC0415  too heavy for --help

    from agent.adapters.certificates.bootstrap_files import is_still_valid  # noqa: PLC0415  as below
    from agent.cli.membership import become_member  # noqa: PLC0415  httpx and all: not for --help

    def probe() -> str:
        if places.kubeconfig.exists() and not places.kubeconfig.is_file():
            raise ConfigError("it is no regular file")
        logging.disable()  # `become_member` reports the same
        return str(asyncio.run(is_still_valid(places.kubeconfig, datetime.now(UTC), node_name=name)))

    def become() -> str:
        klog.set_up(settings.kubelet["logging"]["verbosity"])
        asyncio.run(become_member(readable, places, node_name=name))
        return ""

    try:
        as_service_user(probe, seconds=_READ_SECONDS)
    except ConfigError as error:
        raise ConfigError(f"cannot read {places.kubeconfig}: {error}") from error
    readable = with_readable_file(wish)
    as_service_user(become, seconds=wish.patience_seconds + _READ_SECONDS)


def with_readable_file(wish: Wish) -> Wish:
    """The wish with a discovery file that the service's user can read: in memory, where only root may read it."""
    if not wish.discovery_file or wish.discovery_file.startswith("https://"):
        return wish
    path = Path(wish.discovery_file).absolute()
    if as_service_user(lambda: str(os.access(path, os.R_OK)), seconds=_READ_SECONDS) == "True":
        return replace(wish, discovery_file=str(path))
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read --discovery-file {path}: {error.strerror}") from error
    descriptor = os.memfd_create("discovery-file")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text)
    return replace(wish, discovery_file=f"/proc/self/fd/{descriptor}")


def _start(work: Installation, *, dry_run: bool, has_credentials: bool) -> None:
    if not has_credentials and not dry_run:
        typer.echo(
            f"Not started: there are no credentials. Join with --join HOST:PORT --token …, or write a kubeconfig with "
            f"runuser -u {installation.USER} -- tee {STATE}/kubelet.conf <FILE, and say systemctl enable --now {UNIT}."
        )
        return
    work.start()
    if dry_run:
        return
    end = time.monotonic() + _READY_SECONDS
    while (state := work.state())[0] in {"activating", "inactive"} and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    typer.echo(f"{UNIT}.service is {state[0]}; {state[1] or 'it says nothing yet'}")
    if state[0] != "active":
        typer.echo(f"It goes on trying: journalctl -u {UNIT} tells why it waits.")
