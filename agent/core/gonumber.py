"""Numbers in the grammar of Go's strconv, with its words for what is wrong."""

import re

_SIGNED = re.compile("[+-]?[0-9]+")
_UNSIGNED = re.compile("[0-9]+")
_MOST_DIGITS = 4000  # beyond any range; int() refuses somewhat more


def parse_int(text: str, *, bits: int) -> int:
    """A decimal number; a ValueError says why it is none."""
    if not _SIGNED.fullmatch(text):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _MOST_DIGITS or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse_uint(text: str, *, bits: int) -> int:
    """A decimal number without a sign; a ValueError says why it is none."""
    if not _UNSIGNED.fullmatch(text):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if len(text) > _MOST_DIGITS or int(text) >= 2**bits:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)
