"""The command line: kubelet's flags, and the commands that kubelet lacks."""

from agent.cli.commands import cli, main

__all__ = ["cli", "main"]
