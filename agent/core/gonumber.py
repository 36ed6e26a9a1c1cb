"""Numbers in the grammar of Go's strconv, with its words for what is wrong."""


def parse_uint(text: str, *, bits: int) -> int:
    """A decimal number without a sign; a ValueError says why it is none."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) >= 2**bits:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)
