"""Flags and files → Config: kubelet's grammar at the door, checked values behind it."""

from collections.abc import Sequence

from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import Effective, effective, from_flags
from agent.core.config import Config

__all__ = ["Effective", "build_config", "effective", "from_flags", "load"]


def load(arguments: Sequence[str]) -> Config:
    """Return the settings of a command line. Raises ConfigError with kubelet's words."""
    return build_config(effective(arguments))
