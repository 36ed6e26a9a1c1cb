"""The table of flags: the one place from which the command line, help, the config mapping and docs/flags.md come."""

from agent.adapters.settings.table import accepted, node, ours, removed, serving
from agent.adapters.settings.table.row import GROUPS, OURS, Flag

FLAGS: dict[str, Flag] = {
    flag.name: flag for module in (node, serving, ours, accepted, removed) for flag in module.ROWS
}
"""Every flag by its name."""

__all__ = ["FLAGS", "GROUPS", "OURS", "Flag"]
