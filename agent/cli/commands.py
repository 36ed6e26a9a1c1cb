"""The commands beside the daemon."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agent.adapters.settings.effective import from_flags
from agent.cli.daemon import COMPLETE, run_async, run_daemon
from agent.cli.fleet import fleet
from agent.cli.grammar import CONTEXT, OUTPUT, CommandGroup, KubeletCommand, KubeletGroup, UsageError, usage_error
from agent.cli.install import InstallCommand, install, uninstall
from agent.cli.join import JoinCommand, join
from agent.core.config import check_choice
from agent.core.errors import ConfigError
from agent.core.times import parse_seconds

_SHELLS = ("bash", "zsh", "fish")
cli = typer.Typer(
    cls=KubeletGroup,
    add_completion=False,  # as kubectl: a command prints the script
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would cut long flag names off
    context_settings=CONTEXT,
)
config = typer.Typer(
    cls=CommandGroup,
    rich_markup_mode=None,
    context_settings=CONTEXT,
    help="Show or check the settings; starts nothing.",
)
cli.add_typer(config, name="config")
cli.add_typer(fleet, name="fleet")


__all__ = ["UsageError", "cli", "usage_error"]


@cli.callback(invoke_without_command=True)
def run(context: typer.Context) -> None:
    """Present this machine to a Kubernetes cluster as a Node, and keep the Node alive.

    Flags are the kubelet's own, with its meaning; docs/flags.md has them all.
    """
    flags: Mapping[str, Any] = context.obj
    if context.invoked_subcommand is not None:
        if flags and context.invoked_subcommand not in {"config", "fleet", "healthcheck"}:
            raise ConfigError(f"{context.invoked_subcommand} takes no flags of kubelet")
        return
    run_daemon(flags)


@config.command(cls=KubeletCommand, name="show")
def show_config(context: typer.Context) -> None:
    """Print the effective settings for kubelet's flags, and where each that is no default came from."""
    from agent.cli.config_show import settings_json, settings_yaml  # noqa: PLC0415  for this command alone

    flags = dict(context.obj)
    form = flags.pop("output", "yaml")
    check_choice("-o", form, OUTPUT.choices)
    settings = from_flags(flags)
    typer.echo(settings_json(settings) if form == "json" else settings_yaml(settings), nl=False)


@config.command(cls=KubeletCommand, name="check")
def check_config(context: typer.Context) -> None:
    """Say what is wrong with settings, capacity, ports and credentials on this machine; exits with 1 for an error."""
    import asyncio  # noqa: PLC0415  for this command alone

    from agent.cli.config_check import check  # noqa: PLC0415  psutil, for this command alone

    findings = asyncio.run(check({name: value for name, value in context.obj.items() if name != "output"}))
    for kind, messages in (("warning", findings.warnings), ("error", findings.errors)):
        for message in messages:
            typer.echo(f"{kind}: {message}", err=True)
            if hint := findings.hints.get(message):
                typer.echo(f"hint: {hint}", err=True)
    if findings.errors:
        raise typer.Exit(1)
    typer.echo(f"The settings of node {findings.node_name} are valid.")


@cli.command()
def demo(
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="End by itself after this time, such as 30s.")
    ] = None,
    eviction_hard: Annotated[
        str | None, typer.Option(metavar="SIGNAL<V,...", help="Try memory.available<1Ti to see pressure.")
    ] = None,
) -> None:
    """Run the daemon against an embedded cluster on loopback, and show the node's life.

    The cluster schedules pods; Deployments, CRDs and everything else that makes pods need a real API server.
    """
    try:
        seconds = None if duration is None else parse_seconds(duration)
    except ValueError as error:
        raise ConfigError(f'invalid argument "{duration}" for --for: {error}') from error
    from agent.cli.demo import run_demo  # noqa: PLC0415  the embedded cluster is for the demo alone

    run_async(run_demo(seconds, eviction_hard))


@cli.command(cls=JoinCommand, name="join")
def join_cluster(context: typer.Context) -> None:
    """Join a cluster in kubeadm's words, then run: `join HOST:PORT --token T --discovery-token-ca-cert-hash H`."""
    join(context.obj["arguments"])


@cli.command(cls=InstallCommand, name="install")
def install_service(context: typer.Context) -> None:
    """Make this machine a node for good, by a systemd service: `install --join HOST:PORT --token T …`."""
    install(context.obj["arguments"])


@cli.command(name="uninstall")
def uninstall_service(
    dry_run: Annotated[bool, typer.Option(help="Only print what would be done.")] = False,
    purge: Annotated[bool, typer.Option(help="Remove settings and credentials, too.")] = False,
) -> None:
    """Stop the systemd service and remove it."""
    uninstall(dry_run=dry_run, purge=purge)


@cli.command(cls=KubeletCommand)
def healthcheck(context: typer.Context) -> None:
    """Ask the daemon on this machine how it is: prints ok, or why not and exits with 1. Takes the daemon's flags."""
    from agent.cli.healthcheck import ask_healthz  # noqa: PLC0415  httpx, for this command alone

    is_healthy, message = ask_healthz(context.obj)
    typer.echo(message)
    raise typer.Exit(0 if is_healthy else 1)


@cli.command()
def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", autocompletion=lambda: _SHELLS)],
) -> None:
    """Print a script that completes flags and commands: `source <(fake-kubelet completion bash)`."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415  for this command alone

    if shell not in _SHELLS:
        raise ConfigError(f'no completion for "{shell}": bash, zsh or fish')
    typer.echo(get_completion_script(prog_name="fake-kubelet", complete_var=COMPLETE, shell=shell))
