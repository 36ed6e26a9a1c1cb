"""The command line: kubelet's flags, and the commands that kubelet lacks."""

from agent.cli.daemon import main

__all__ = ["main"]
