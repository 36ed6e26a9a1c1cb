"""Durations as Go writes them: `10s`, `1m30s`, `1.5h`."""

import re

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")
_MOST_LETTERS = 1000  # Go has no limit; to add up a million terms takes a second
_FRACTION_DIGITS = 19  # Go drops those that its uint64 has no room for


def parse_seconds(text: str) -> float:
    """Read a Go duration as seconds; ValueError with Go's words where it is none."""
    return parse_nanos(text) / 10**9


def parse_nanos(text: str) -> int:
    """Read a Go duration exactly, as nanoseconds; ValueError as above, also for more than Go's 292 years."""
    if len(text) > _MOST_LETTERS:
        raise ValueError("time: invalid duration of too many characters")
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    terms = [term for term in _TERM.finditer(rest) if term[0]]
    total = sign * sum(_nanos(term, text) for term in terms)
    if not terms or not -(2**63) <= total < 2**63:
        raise ValueError(f'time: invalid duration "{text}"')
    return total


def _nanos(term: re.Match[str], text: str) -> int:
    whole, fraction, unit = term[1], (term[2] or "")[:_FRACTION_DIGITS], term[3]
    if not (whole or fraction):
        raise ValueError(f'time: invalid duration "{text}"')
    if not unit:
        raise ValueError(f'time: missing unit in duration "{text}"')
    if unit not in _UNITS:
        raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
    # In floats, as Go: a third of an hour in many digits is 20 minutes.
    part = int(int(fraction or 0) * (_UNITS[unit] / 10 ** len(fraction)))
    return int(whole or 0) * _UNITS[unit] + part


def format_seconds(seconds: float) -> str:
    """Print seconds as Go prints a duration: `200ms`, `7s`, `1m30s`."""
    return format_nanos(round(seconds * 10**9))


def format_nanos(duration: int) -> str:
    """Print nanoseconds as Go prints a duration."""
    nanos, sign = abs(duration), "-" if duration < 0 else ""
    if nanos == 0:
        return "0s"
    for unit, name in ((10**3, "ns"), (10**6, "µs"), (10**9, "ms")):
        if nanos < unit:
            return f"{sign}{_decimal(nanos, unit // 1000)}{name}"
    minutes, rest = divmod(nanos, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(nanos: int, unit: int) -> str:
    whole, rest = divmod(nanos, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
