"""Numbers in the grammar of Go's strconv, with its words for what is wrong."""

import re

_SIGNED = re.compile("[+-]?[0-9]+")
_MOST_DIGITS = 20  # of 64 bits; Python refuses to read thousands


def parse_int(text: str, *, bits: int) -> int:
    """A decimal number; a ValueError says why it is none."""
    if not _SIGNED.fullmatch(text):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if _is_huge(text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse_uint(text: str, *, bits: int) -> int:
    """A decimal number without a sign; a ValueError says why it is none."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if _is_huge(text) or int(text) >= 2**bits:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _is_huge(text: str) -> bool:
    return len(text.lstrip("+-0")) > _MOST_DIGITS
