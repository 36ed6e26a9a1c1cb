"""`fake-kubelet fleet` and its commands."""

import typer

from agent.cli.fleet_options import FleetCommand, FleetGroup
from agent.cli.grammar import CONTEXT
from agent.core.errors import ConfigError

fleet = typer.Typer(cls=FleetGroup, rich_markup_mode=None, context_settings=CONTEXT)


@fleet.callback(invoke_without_command=True)
def run(context: typer.Context) -> None:
    """Present many nodes to a Kubernetes cluster: `fleet --count 1000`, or groups of them: `fleet -f FILE`."""
    if context.invoked_subcommand is None:
        raise ConfigError("fleet needs a command: check")


@fleet.command(cls=FleetCommand, name="check")
def check(context: typer.Context) -> None:
    """Print the groups of a fleet, or what is wrong with it and exit with 1; starts nothing."""
    from agent.cli.fleet_check import check_fleet  # noqa: PLC0415  YAML, for this command alone

    check_fleet(context.obj)
