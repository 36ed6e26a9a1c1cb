"""A range of TCP ports."""

import re
from dataclasses import dataclass

from agent.core.errors import ConfigError

_FORM = re.compile(r"(\d{1,5})-(\d{1,5})")
_MOST = 65535


@dataclass(frozen=True, slots=True)
class PortRange:
    """The ports from the first to the last, both among them."""

    first: int
    last: int

    @classmethod
    def parse(cls, flag: str, text: str) -> "PortRange":
        """Read `20000-20999`; a ConfigError names the flag."""
        match = _FORM.fullmatch(text)
        if not match:
            raise ConfigError(f'{flag} must be FIRST-LAST, such as 20000-20999, not "{text}"')
        first, last = int(match[1]), int(match[2])
        if not 1 <= first <= last <= _MOST:
            raise ConfigError(f"{flag} must have ports from 1 to {_MOST}, the lower one first, not {text}")
        return cls(first, last)

    @property
    def size(self) -> int:
        """How many ports there are."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"
