"""The table of flags, from which the command line, help, the config mapping and docs/flags.md come."""

from agent.adapters.settings.table.kubelet import KUBELET_ROWS
from agent.adapters.settings.table.ours import OWN_ROWS
from agent.adapters.settings.table.removed import REMOVED_ROWS
from agent.adapters.settings.table.row import ACCEPTED, GROUPS, OURS, Flag, kubelet_flag
from agent.core.kubelet_data.flags import KUBELET_FLAGS

FLAGS: dict[str, Flag] = {flag.name: flag for flag in (*KUBELET_ROWS, *OWN_ROWS, *REMOVED_ROWS)}
"""Every flag by its name; a flag of kubelet without a row is checked as kubelet checks it, and has no effect."""

FLAGS |= {name: kubelet_flag(name, ACCEPTED) for name in KUBELET_FLAGS if name not in FLAGS}

__all__ = ["FLAGS", "GROUPS", "OURS", "Flag"]
