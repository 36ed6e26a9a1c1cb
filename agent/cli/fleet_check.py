"""`fake-kubelet fleet check`: the groups of a fleet as a table, or one line for each error."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import typer

from agent.adapters.fleet import InvalidFleet, fleet_from_flags
from agent.cli.daemon import write_error
from agent.core.capacity import own_allocatable
from agent.core.fleet import ZONE_LABEL, Fleet, NodePlan, plans
from agent.core.node_copy import INSTANCE_TYPE_LABEL

_HEADER = ("GROUP", "COUNT", "NODES", "INSTANCE", "ZONES", "ALLOCATABLE")
_MOST_ENTRIES = 3  # of a cell; there may be a hundred zones


def check_fleet(flags: Mapping[str, Any]) -> None:
    """Print the table of a fleet. Exits with 1 for one that cannot be, after a line for each error."""
    try:
        fleet = fleet_from_flags(flags)
    except InvalidFleet as error:
        for line in error.errors:
            write_error(line)
        raise typer.Exit(1) from error
    for line in table(fleet):
        typer.echo(line)
    typer.echo(f"Fleet {fleet.name} is valid: {fleet.count} {'node' if fleet.count == 1 else 'nodes'}.")


def table(fleet: Fleet) -> Iterator[str]:
    """Yield the lines of a table with a row for each group."""
    nodes = {name: list(group) for name, group in groupby(plans(fleet), key=lambda plan: plan.group)}
    rows = [_HEADER, *(_row(group.name, nodes.get(group.name, ())) for group in fleet.groups)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(name: str, nodes: Sequence[NodePlan]) -> tuple[str, ...]:
    if not nodes:
        return (name, "0", "-", "-", "-", "-")
    names = nodes[0].name if len(nodes) == 1 else f"{nodes[0].name} ... {nodes[-1].name}"
    instances, zones = (_labels(nodes, label) for label in (INSTANCE_TYPE_LABEL, ZONE_LABEL))
    return (name, str(len(nodes)), names, instances, zones, _allocatable(nodes))


def _labels(nodes: Sequence[NodePlan], label: str) -> str:
    """Return the values of a label, and of how many nodes each is."""
    counts = Counter(plan.config.registration.labels.get(label, "") for plan in nodes)
    return _cell([f"{value}: {count}" if len(counts) > 1 else value for value, count in counts.items() if value])


def _allocatable(nodes: Sequence[NodePlan]) -> str:
    """Return the allocatable of the first node, and whether it is that of all."""
    first = own_allocatable(nodes[0].config, nodes[0].machine)
    is_same = all(own_allocatable(plan.config, plan.machine) == first for plan in nodes)
    return ",".join(f"{name}={amount}" for name, amount in first.items()) + ("" if is_same else " and others")


def _cell(entries: Sequence[str]) -> str:
    shown = ", ".join(entries[:_MOST_ENTRIES])
    return f"{shown} and {len(entries) - _MOST_ENTRIES} more" if len(entries) > _MOST_ENTRIES else shown or "-"
