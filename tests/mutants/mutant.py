"""A known mistake: a piece of `agent/core`, and what somebody could have written in its place."""

from pathlib import Path
from typing import NamedTuple


class StaleError(Exception):
    """The code has changed since the mutant was written; the message names the mutant."""


class Mutant(NamedTuple):
    """One mistake in one file; `text` stands there exactly once."""

    name: str
    module: str  # below agent/core
    text: str
    replacement: str

    def path(self, root: Path) -> Path:
        """The file that the mistake is made in."""
        return root / "agent" / "core" / self.module

    def source(self, root: Path) -> str:
        """The file with the mistake in it; StaleError where it has no place for it, or two."""
        original = self.path(root).read_text()
        if (count := original.count(self.text)) != 1:
            raise StaleError(
                f'the table is stale: "{self.name}" finds its text {count} times in {self.module}, not once'
            )
        return original.replace(self.text, self.replacement)
