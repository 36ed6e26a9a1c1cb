"""Texts that others wrote, made safe for the terminal and the one line that they are shown on.

A log line needs none of this: klog escapes what it quotes, as Go does.
"""

_MOST_CHARACTERS = 1000


def printable(text: str, *, keep: str = "") -> str:
    """Return a text with U+FFFD for each control character, which would steer a terminal, but for those to keep."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else "\N{REPLACEMENT CHARACTER}" for char in text)


def one_line(text: str, most_characters: int = _MOST_CHARACTERS) -> str:
    """Return a text on one line, not too long, and without control characters."""
    return printable(" ".join(text[:most_characters].split()))
