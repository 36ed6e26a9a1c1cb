"""`fake-kubelet fleet` and its commands."""

import typer

from agent.cli.fleet_options import FleetCommand, FleetGroup, FleetWordsCommand
from agent.cli.grammar import CONTEXT

fleet = typer.Typer(cls=FleetGroup, rich_markup_mode=None, context_settings=CONTEXT)


@fleet.callback(invoke_without_command=True)
def run(context: typer.Context) -> None:
    """Present many nodes to a Kubernetes cluster: `fleet --count 1000`, or groups of them: `fleet -f FILE`."""
    if context.invoked_subcommand is None:
        from agent.cli.fleet_run import run_fleet  # noqa: PLC0415  asyncio, for this alone

        run_fleet(context.obj)


@fleet.command(cls=FleetCommand, name="check")
def check(context: typer.Context) -> None:
    """Print the groups of a fleet, or what is wrong with it and exit with 1; starts nothing."""
    from agent.cli.fleet_check import check_fleet  # noqa: PLC0415  YAML, for this command alone

    check_fleet(context.obj)


@fleet.command(cls=FleetWordsCommand, name="scale")
def scale(context: typer.Context) -> None:
    """Change the counts of groups while the fleet runs on this machine: `fleet scale gpu=500`.

    The counts hold until the fleet ends, or until SIGHUP has its file read again. A fleet without a file has the
    group node.
    """
    from agent.cli.fleet_run import scale_fleet  # noqa: PLC0415  asyncio, for this command alone

    typer.echo(scale_fleet(context.obj))


@fleet.command(cls=FleetCommand, name="status")
def status(context: typer.Context) -> None:
    """Print the nodes of all fleets in the cluster, or of --name, by state, and the ages of their leases."""
    from agent.cli.fleet_run import fleet_status  # noqa: PLC0415  as above

    typer.echo(fleet_status(context.obj))


@fleet.command(cls=FleetWordsCommand, name="delete")
def delete(context: typer.Context) -> None:
    """Delete the Nodes of a fleet that has ended, with their leases and CSINodes: `fleet delete [NAME]`."""
    from agent.cli.fleet_run import delete_fleet  # noqa: PLC0415  as above

    typer.echo(delete_fleet(context.obj))
