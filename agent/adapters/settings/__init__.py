"""Flags and files → Config: kubelet's grammar at the door, checked values behind it."""

from collections.abc import Sequence

from agent.adapters.settings.effective import Effective, effective, from_flags
from agent.adapters.settings.node_config import node_config
from agent.core.config import Config

__all__ = ["Effective", "effective", "from_flags", "load", "node_config"]


def load(arguments: Sequence[str]) -> Config:
    """The settings that a command line asks for; a ConfigError says what is wrong in kubelet's words."""
    return node_config(effective(arguments))
