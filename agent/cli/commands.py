"""Flags → Config → app.serve(), and the commands beside it; nothing else."""

import logging
import os
import sys
from collections.abc import Coroutine, Mapping
from typing import Annotated, Any

import typer

from agent import __version__, klog
from agent.adapters.settings.effective import Effective, from_flags
from agent.adapters.settings.node_config import node_config
from agent.cli.grammar import KubeletCommand, KubeletGroup
from agent.cli.join import JoinCommand, join
from agent.core.config import KUBELET_VERSION
from agent.core.errors import ConfigError
from agent.core.goduration import parse_seconds

log = logging.getLogger(__name__)

_COMPLETE = "_FAKE_KUBELET_COMPLETE"
_CONTEXT = {"help_option_names": ["-h", "--help"], "terminal_width": 120, "max_content_width": 120}
cli = typer.Typer(
    cls=KubeletGroup,
    add_completion=False,  # as kubectl: a command prints the script
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would cut long flag names off
    context_settings=_CONTEXT,
)
config = typer.Typer(
    rich_markup_mode=None, context_settings=_CONTEXT, help="Show or check the settings; starts nothing."
)
cli.add_typer(config, name="config")


def main() -> None:
    """The command `fake-kubelet`: exit code 0 after a signal, 1 for what a person must fix."""
    klog.set_up(0)
    if _COMPLETE in os.environ:  # a shell asks: typer knows the shells only when told to
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415  for shells alone

        completion_init()
    try:
        cli(prog_name="fake-kubelet")
    except ConfigError as error:
        log.error("command failed", {"err": error})
        sys.exit(1)
    except SystemExit as done:
        sys.exit(1 if done.code == 2 else done.code)  # a wrong flag: kubelet's code is 1


@cli.callback(invoke_without_command=True)
def run(context: typer.Context) -> None:
    """Present this machine to a Kubernetes cluster as a Node, and keep the Node alive.

    Flags are the kubelet's own, with its meaning; docs/flags.md has them all.
    """
    flags: Mapping[str, Any] = context.obj
    if context.invoked_subcommand is not None:
        if flags and context.invoked_subcommand != "config":
            raise ConfigError(f"{context.invoked_subcommand} takes no flags of kubelet")
        return
    if flags.get("version") in {"true", "raw"}:
        typer.echo(_version(raw=flags["version"] == "raw"))
    else:
        _serve(flags)


def _version(*, raw: bool) -> str:
    told = f"Kubernetes {KUBELET_VERSION}"
    return f"{told} (fake-kubelet {__version__}, Python {sys.version.split()[0]})" if raw else told


def _serve(flags: Mapping[str, Any]) -> None:
    settings = from_flags(flags)
    node = node_config(settings)
    set_up_logging(settings)
    from agent.adapters.certificates.early import early_child  # noqa: PLC0415  for the daemon, not for --help

    child = early_child(node)  # before the imports that take longest
    from agent.adapters.certificates.smith import Smith  # noqa: PLC0415  for the daemon
    from agent.app import serve  # noqa: PLC0415  the Kubernetes client, too

    _finish(serve(node, reread_logging=lambda: set_up_logging(from_flags(flags)), keys=Smith(child)))


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run it to its end; what a person must fix is a ConfigError, wherever it was found."""
    import asyncio  # noqa: PLC0415  too heavy for --help

    from agent.ports import StartError  # noqa: PLC0415  as asyncio

    try:
        asyncio.run(work)
    except StartError as error:
        raise ConfigError(str(error)) from error


def set_up_logging(settings: Effective) -> None:
    """Log as the settings say, beginning with what there is to say about them."""
    logging_config = settings.kubelet["logging"]
    vmodule = [(item["filePattern"], item["verbosity"]) for item in logging_config["vmodule"]]
    klog.set_up(logging_config["verbosity"], vmodule=vmodule, log_format=logging_config["format"])
    for note in settings.notes:
        level = logging.WARNING if note.verbosity < 0 else logging.INFO - note.verbosity
        log.log(level, note.phrase, note.fields)


@config.command(cls=KubeletCommand)
def show(context: typer.Context) -> None:
    """Print the effective settings for kubelet's flags, and where each that is no default came from."""
    from agent.cli.show import as_json, as_yaml  # noqa: PLC0415  for this command alone

    flags = dict(context.obj)
    form = flags.pop("output", "yaml")
    if form not in {"yaml", "json"}:
        raise ConfigError(f'-o must be yaml or json, not "{form}"')
    settings = from_flags(flags)
    typer.echo(as_json(settings) if form == "json" else as_yaml(settings), nl=False)


@config.command(cls=KubeletCommand)
def check(context: typer.Context) -> None:
    """Say whether the daemon would start with kubelet's flags, and what in them has no effect."""
    settings = from_flags({name: value for name, value in context.obj.items() if name != "output"})
    node = node_config(settings)
    set_up_logging(settings)
    typer.echo(f"The settings of node {node.node_name} are valid.")


@cli.command()
def demo(
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="End by itself after this time, such as 30s.")
    ] = None,
    eviction_hard: Annotated[
        str | None, typer.Option(metavar="SIGNAL<V,...", help="Try memory.available<1Ti to see pressure.")
    ] = None,
) -> None:
    """Run the daemon against an embedded cluster on loopback, and show the node's life."""
    seconds = None if duration is None else _seconds("--for", duration)
    from agent.demo.run import demo as life  # noqa: PLC0415  the embedded cluster is for the demo alone

    _finish(life(seconds, eviction_hard))


def _seconds(flag: str, text: str) -> float:
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise ConfigError(f'invalid argument "{text}" for {flag}: {error}') from error


@cli.command(cls=JoinCommand, name="join")
def join_cluster(context: typer.Context) -> None:
    """Join a cluster in kubeadm's words, then run: `join HOST:PORT --token T --discovery-token-ca-cert-hash H`."""
    join(context.obj["arguments"])


@cli.command()
def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print a script that completes flags and commands: `source <(fake-kubelet completion bash)`."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # noqa: PLC0415  for this command alone

    if shell not in {"bash", "zsh", "fish"}:
        raise ConfigError(f'no completion for "{shell}": bash, zsh or fish')
    typer.echo(get_completion_script(prog_name="fake-kubelet", complete_var=_COMPLETE, shell=shell))
