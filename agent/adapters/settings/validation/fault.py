"""What the rules yield: a message for each fault."""

from collections.abc import Iterator

Faults = Iterator[str]
INVALID = "invalid configuration: "
