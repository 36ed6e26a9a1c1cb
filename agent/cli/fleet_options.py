"""The flags of `fleet`: which nodes there are; kubelet's flags beside them hold for all of these nodes."""

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperCommand

from agent.adapters.settings.pflag import parse_flags
from agent.adapters.settings.table import FLAGS, OURS, Flag
from agent.cli.grammar import KubeletCommand, KubeletGroup, flag_usage

DESCRIPTION = (
    Flag("filename", "string", OURS, "The fleet, as YAML or JSON; - for standard input.", metavar="FILE"),
    Flag("count", "int32", OURS, "How many nodes there are; without -f."),
    Flag(
        "name-template",
        "string",
        OURS,
        "Names of the nodes, from {group}, {zone}, {index} and {index:04}. Default: {group}-{index}.",
        metavar="TEMPLATE",
    ),
    Flag(
        "like",
        "string",
        OURS,
        "Copy the nodes in the output of `kubectl get nodes -o yaml` (or json); - for standard input.",
        metavar="FILE",
    ),
    Flag("keep-provider-ids", "bool", OURS, "Let copies have the provider IDs, too."),
    Flag(
        "catalogue",
        "string",
        OURS,
        "Instance types, in the form of Karpenter's instance_types.json. Default: some well-known ones.",
        metavar="FILE",
    ),
    Flag(
        "name",
        "string",
        OURS,
        "Name of the fleet, which all its nodes have as a label. Default: fleet.",
        metavar="NAME",
    ),
    Flag(
        "adopt",
        "string",
        OURS,
        "Keep alive the Nodes of others that have this label or annotation, such as kwok.x-k8s.io/node=fake.",
        metavar="LABEL=VALUE",
    ),
    Flag(
        "port-range",
        "string",
        OURS,
        "Give each node a port of its own for the kubelet's API. Default: all nodes share --port.",
        metavar="FIRST-LAST",
    ),
    Flag("seed", "int64", OURS, "Draws delays and failures of the start; the same seed draws the same."),
)
"""The flags that describe a fleet."""

FLEET_FLAGS: Mapping[str, Flag] = {flag.name: flag for flag in DESCRIPTION}


class FleetGroup(KubeletGroup):
    """`fleet`: its flags and kubelet's, then optionally the name of a command."""

    flags: ClassVar[Mapping[str, Flag]] = {**FLAGS, **FLEET_FLAGS}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the flags of a fleet, then the commands, and refer to kubelet's flags."""
        _write_flags(formatter)
        self.format_commands(ctx, formatter)


class FleetCommand(KubeletCommand):
    """A command about a fleet, which takes the same flags."""

    flags: ClassVar[Mapping[str, Flag]] = {**FLAGS, **FLEET_FLAGS}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the flags of a fleet, and refer to kubelet's flags."""
        _write_flags(formatter)


class FleetWordsCommand(FleetCommand):
    """The same for a command that takes words, too, which are `words` in `ctx.obj`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the flags into `ctx.obj`, with the words."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        line = parse_flags(args, self.flags)
        ctx.obj = {**(ctx.obj or {}), **line.values, "words": line.words}
        return TyperCommand.parse_args(self, ctx, ["--help"] if line.values.get("help") else [])


def _write_flags(formatter: Any) -> None:
    rows = [
        ("-f, " + flag_usage(flag) if flag.name == "filename" else flag_usage(flag), flag.help) for flag in DESCRIPTION
    ]
    with formatter.section("Flags"):
        formatter.write_dl(
            [*rows, ("--max-pods N ...", "All flags of `fake-kubelet --help`; they hold for every node.")]
        )
