"""The table of flags: the one place from which the command line, help, the config mapping and docs/flags.md come."""

from agent.adapters.settings.table import node, ours, removed, serving
from agent.adapters.settings.table.row import ACCEPTED, GROUPS, OURS, Flag, kubelet_flag
from agent.core.kubelet_data.flags import FLAGS as KUBELET_FLAGS

FLAGS: dict[str, Flag] = {flag.name: flag for module in (node, serving, ours, removed) for flag in module.ROWS}
"""Every flag by its name; those of kubelet that have no row are checked as kubelet checks them, and of no effect."""

FLAGS |= {name: kubelet_flag(name, ACCEPTED) for name in KUBELET_FLAGS if name not in FLAGS}

__all__ = ["FLAGS", "GROUPS", "OURS", "Flag"]
