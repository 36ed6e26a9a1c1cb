"""Flags and files → Config: kubelet's grammar at the door, checked values behind it."""

from collections.abc import Sequence

from agent.adapters.settings.effective import Effective, effective, from_flags
from agent.adapters.settings.node_config import node_config
from agent.core.config import Config

__all__ = ["Effective", "effective", "from_flags", "load", "node_config"]


def load(arguments: Sequence[str]) -> Config:
    """Return the settings of a command line. Raises ConfigError with kubelet's words."""
    return node_config(effective(arguments))
