"""What a rule gives: one text for each thing that is wrong."""

from collections.abc import Iterator

Faults = Iterator[str]
INVALID = "invalid configuration: "
