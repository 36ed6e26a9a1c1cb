"""Flags → Config → app.serve(); nothing else."""

import asyncio
import inspect
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, Any, get_type_hints

import typer

from agent import __version__, klog
from agent.adapters.settings import Flags, load, parse_duration
from agent.core.config import KUBELET_VERSION
from agent.core.errors import ConfigError
from agent.ports import StartError

log = logging.getLogger(__name__)

cli = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would cut long flag names off
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The command `fake-kubelet`: exit code 0 after a signal, 1 for what a person must fix."""
    try:
        cli(args=kubelet_arguments(sys.argv[1:]))
    except SystemExit as done:
        sys.exit(1 if done.code == 2 else done.code)  # a wrong flag: kubelet's code is 1


def kubelet_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--flag=true|false`, which kubelet takes, in the form that typer takes."""
    booleans = {_option(f.name) for f in fields(Flags) if f.type == (bool | None)}
    rewritten = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if equals and option in booleans and value.lower() in {"true", "t", "1", "false", "f", "0"}:
            rewritten.append(option if value.lower() in {"true", "t", "1"} else option.replace("--", "--no-", 1))
        else:
            rewritten.append(argument)
    return rewritten


def _run(
    context: typer.Context,
    verbosity: Annotated[int, typer.Option("-v", "--v", help="Log verbosity.", rich_help_panel="Logging")] = 0,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    **flags: Any,
) -> None:
    """Present this machine to a Kubernetes cluster as a Node, and keep the Node alive.

    Flags are the kubelet's own, with its meaning.
    """
    if version:
        typer.echo(f"Kubernetes {KUBELET_VERSION} (fake-kubelet {__version__})")
    elif context.invoked_subcommand is None:
        klog.set_up(verbosity)
        _serve(Flags(**flags))


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """What a person must fix is one line, and exit code 1."""
    try:
        yield
    except (ConfigError, StartError) as error:
        log.error("command failed", {"err": error})
        raise typer.Exit(1) from error


def _serve(flags: Flags) -> None:
    with _one_line_errors():
        config = load(flags)
        from agent.app import serve  # noqa: PLC0415  the Kubernetes client is for the daemon, not for --help

        asyncio.run(serve(config))


@cli.command()
def demo(
    duration: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="End by itself after this time, such as 30s.")
    ] = None,
    eviction_hard: Annotated[
        str | None, typer.Option(metavar="SIGNAL<V,...", help="Try memory.available<99.9% to see pressure.")
    ] = None,
) -> None:
    """Run the daemon against an embedded cluster on loopback, and show the node's life."""
    klog.set_up(0)
    with _one_line_errors():
        duration_seconds = None if duration is None else parse_duration("--for", duration)
        from agent.demo.run import demo as show  # noqa: PLC0415  the embedded cluster is for the demo alone

        asyncio.run(show(duration_seconds, eviction_hard))


def _with_flags(function: Any) -> Any:
    """The function with each row of the table of flags as a typer option."""
    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    hints = get_type_hints(Flags)
    options = {
        f.name: Annotated[
            hints[f.name],
            typer.Option(
                help=f.metadata["help"],
                metavar=f.metadata["metavar"] or None,
                rich_help_panel=f.metadata["group"],
                show_default=False,
            ),
        ]
        for f in fields(Flags)
    }
    added = [
        inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=a) for n, a in options.items()
    ]
    function.__signature__ = inspect.Signature([*own, *added])
    function.__annotations__ |= options
    return function


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


cli.callback(invoke_without_command=True)(_with_flags(_run))
