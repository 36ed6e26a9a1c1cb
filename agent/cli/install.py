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
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import CLIENT_CA, Effective, effective
from agent.adapters.settings.pflag import parse_flags
from agent.adapters.settings.table import OURS, Flag
from agent.cli.join import (
    FLAGS_OF_JOIN,
    CredentialPaths,
    JoinCommand,
    JoinConfiguration,
    join_configuration,
    split_arguments,
    write_bootstrap_credentials,
)
from agent.core.config import SIMULATED, simulation_fields
from agent.core.errors import ConfigError

_ROWS = (
    Flag("join", "string", OURS, "Join the cluster of this API server, with join's flags.", metavar="HOST:PORT"),
    Flag("dry-run", "bool", OURS, "Only print what would be done."),
)
FLAGS_OF_INSTALL = {flag.name: flag for flag in _ROWS} | FLAGS_OF_JOIN
_READY_SECONDS = 30.0
_POLL_SECONDS = 0.2
_READ_SECONDS = 30.0


class InstallCommand(JoinCommand):
    """Takes its own flags and those of join; all others are for the daemon."""

    rows = tuple(FLAGS_OF_INSTALL.values())


def install(arguments: Sequence[str]) -> None:
    """Write unit, settings and user, join if asked to, and start the service; a second call writes what differs."""
    words, daemon = split_arguments(arguments, FLAGS_OF_INSTALL)
    line = parse_flags(words, FLAGS_OF_INSTALL)
    if line.words:
        hint = f"to join a cluster, say --join {line.words[0]}"
        raise ConfigError(f"unexpected argument {line.words[0]}", hint=hint)
    join_config = _join_configuration(line.values)
    if "node-name" in line.values:
        daemon = [*daemon, f"--hostname-override={line.values['node-name']}"]
    settings, dry_run = effective(daemon), bool(line.values.get("dry-run"))
    node = build_config(settings).node
    paths = _paths(settings, is_joining=join_config is not None)
    command = installation.command()
    if not dry_run:
        installation.check_machine()
        installation.check_owners(command, Path(sys.prefix), Path(sys.base_prefix), Path(installation.__file__))
        installation.check_readable(command)
        os.umask(0o022)  # the service has to read what root writes
    work = Installation(say=typer.echo, dry_run=dry_run, command=command)
    work.check_former_flags(has_flags=bool(daemon or join_config))
    try:
        work.write_files()
        work.make_user()
        if join_config and not dry_run:
            _join(join_config, paths, node.node_name, settings)
        if daemon or join_config:
            work.write_flags(
                environment_line("KUBELET_KUBEADM_ARGS", [*daemon, *_authority(join_config, paths, settings)])
            )
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename}: {error.strerror}") from error
    has_credentials = any(map(installation.is_there, (paths.kubeconfig, paths.bootstrap)))
    _start(work, dry_run=dry_run, has_credentials=has_credentials)
    if (fields := simulation_fields(node)) is not None:
        typer.echo("; ".join((SIMULATED, *fields.values())))


def uninstall(*, dry_run: bool, purge: bool) -> None:
    """Stop the service and remove the files of `install`; settings and credentials with `purge` only."""
    if not dry_run:
        installation.check_machine()
        installation.check_owners()
    try:
        Installation(say=typer.echo, dry_run=dry_run).remove(purge=purge)
    except OSError as error:
        raise ConfigError(f"cannot remove {error.filename}: {error.strerror}") from error
    typer.echo(f"The user {installation.USER} stays, and so does the Node: kubectl delete node NAME removes it.")


def environment_line(name: str, words: Sequence[str]) -> str:
    """Return an environment file whose value systemd splits into these words again."""
    text = shlex.join(words).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
    return f'{name}="{text}"\n'


def _join_configuration(flags: Mapping[str, Any]) -> JoinConfiguration | None:
    asks = flags.keys() & (FLAGS_OF_JOIN.keys() | {"join"}) - {"node-name"}
    return join_configuration([flags["join"]] if "join" in flags else [], flags) if asks else None


def _authority(join_config: JoinConfiguration | None, paths: CredentialPaths, settings: Effective) -> Sequence[str]:
    """Return the flag for the CA file that joining the cluster has written."""
    has_file = join_config or installation.is_there(paths.authority)
    return () if CLIENT_CA in settings.origins or not has_file else (f"--client-ca-file={paths.authority}",)


def _paths(settings: Effective, *, is_joining: bool) -> CredentialPaths:
    """Return the credential paths of the service; a CA file that root named has to exist already."""
    paths = CredentialPaths.from_settings(settings, folder=STATE)
    if not is_joining or CLIENT_CA not in settings.origins:
        return paths
    if not paths.authority.exists():
        hint = "without --client-ca-file, the CA that is found is taken"
        raise ConfigError(f"there is no {paths.authority}", hint=hint)
    return replace(paths, authority=STATE / "pki" / "ca.crt")


def _join(join_config: JoinConfiguration, paths: CredentialPaths, name: str, settings: Effective) -> None:
    """Join as the user of the service: root must not follow what the service may write in its directory."""
    import asyncio  # noqa: PLC0415  too heavy for --help

    from agent.adapters.certificates.bootstrap_files import is_still_valid  # noqa: PLC0415  as above

    def probe() -> str:
        if paths.kubeconfig.exists() and not paths.kubeconfig.is_file():
            raise ConfigError("it is no regular file")
        logging.disable()  # `write_bootstrap_credentials` reports the same
        return str(asyncio.run(is_still_valid(paths.kubeconfig, datetime.now(UTC), node_name=name)))

    def join() -> str:
        klog.set_up(settings.kubelet["logging"]["verbosity"], log_format="plain")
        asyncio.run(write_bootstrap_credentials(readable, paths, node_name=name))
        return ""

    try:
        as_service_user(probe, seconds=_READ_SECONDS)
    except ConfigError as error:
        raise ConfigError(f"cannot read {paths.kubeconfig}: {error}") from error
    readable = with_readable_file(join_config)
    as_service_user(join, seconds=join_config.discovery_timeout_seconds + _READ_SECONDS)


def with_readable_file(join_config: JoinConfiguration) -> JoinConfiguration:
    """Copy a discovery file that only root may read into memory, so that the service's user can read it."""
    if not join_config.discovery_file or join_config.discovery_file.startswith("https://"):
        return join_config
    path = Path(join_config.discovery_file).absolute()
    if as_service_user(lambda: str(os.access(path, os.R_OK)), seconds=_READ_SECONDS) == "True":
        return replace(join_config, discovery_file=str(path))
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read --discovery-file {path}: {error.strerror}") from error
    descriptor = os.memfd_create("discovery-file")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text)
    return replace(join_config, discovery_file=f"/proc/self/fd/{descriptor}")


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
        time.sleep(_POLL_SECONDS)
    typer.echo(f"{UNIT}.service is {state[0]}; {state[1] or 'it says nothing yet'}")
    if state[0] != "active":
        typer.echo(f"It goes on trying: journalctl -u {UNIT} shows why it waits.")
