"""The template of node names: text with the fields {group}, {zone}, {index} and {index:04}, and nothing else."""

import re
from dataclasses import dataclass

from agent.core.errors import ConfigError

_FIELD = re.compile(r"\{(?:(group|zone)|(index)(?::0([1-9]))?)\}")


@dataclass(frozen=True, slots=True)
class _Part:
    text: str  # what stands before the field
    field: str  # group, zone or index; "": there is no field after the last text
    width: int = 0  # of an index, which zeros fill up


@dataclass(frozen=True, slots=True)
class NameTemplate:
    """A template that was checked; it names one node by its place in a group."""

    text: str
    _parts: tuple[_Part, ...]

    @classmethod
    def parse(cls, text: str) -> "NameTemplate":
        """Read a template. Raises ConfigError that names the first field that is not one of ours."""
        parts, end = [], 0
        for match in _FIELD.finditer(text):
            parts.append(_Part(_plain(text, end, match.start()), match[1] or match[2], int(match[3] or 0)))
            end = match.end()
        return cls(text, (*parts, _Part(_plain(text, end, len(text)), "")))

    @property
    def has_zone(self) -> bool:
        """Whether the name depends on the zone."""
        return any(part.field == "zone" for part in self._parts)

    def name(self, *, group: str, zone: str, index: int) -> str:
        """Return the name of a node."""
        values = {"group": group, "zone": zone, "": ""}
        return "".join(
            part.text + (f"{index:0{part.width or 1}d}" if part.field == "index" else values[part.field])
            for part in self._parts
        )


def _plain(text: str, start: int, end: int) -> str:
    plain = text[start:end]
    if brace := re.search(r"\{[^{}]*\}?|\}", plain):
        raise ConfigError(
            f'"{text}": {brace[0]} is no field; there are {{group}}, {{zone}}, {{index}} and {{index:04}}'
        )
    return plain
