"""Times and durations as Kubernetes and Go write them: RFC 3339, and `1m30s`."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_LONGEST_TIME = 64
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
# Leap years beyond both ends: what lies further away becomes one of these, and then the end itself.
_BEFORE, _AFTER = 1968, 2204

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")
_LONGEST_DURATION = 1000  # Go has no limit; to add up a million terms takes a second
_FRACTION_DIGITS = 19  # Go drops those that its uint64 has no room for


def timestamp(moment: datetime) -> str:
    """Return a time as Kubernetes writes it: RFC 3339 in UTC, to the second."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def micro_timestamp(moment: datetime) -> str:
    """Return a time as Kubernetes' MicroTime, always with six decimals."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def parse_time(text: str) -> datetime:
    """Read a time as Go's RFC 3339 has it, in UTC; one before 1970 or after 2199 becomes that end.

    Raises ValueError where a kubelet could not read it either. An API server stores any year, so a far one must
    do no harm: what is computed from a bounded time stays within the calendar.
    """
    if not isinstance(text, str):
        raise ValueError("not a time of RFC 3339")  # noqa: TRY004  as for a text that is none
    return _bounded_time(text)


@lru_cache(maxsize=256)  # the times of a pod are those of the pods that came with it, and are read again and again
def _bounded_time(text: str) -> datetime:
    return min(max(_moment(text, _BEFORE, _AFTER), EARLIEST), LATEST)


def exact_time(text: str) -> datetime:
    """Read a time of any year; raise OverflowError at both ends of the calendar."""
    return _moment(text, 1, 9999)


def _moment(text: object, first_year: int, last_year: int) -> datetime:
    match = _RFC3339.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST_TIME else None
    if match is None:
        raise ValueError("not a time of RFC 3339")
    year, month, day, hour, minute, second = (int(match[place]) for place in range(1, 7))
    micros = int((match[7] or "")[:6].ljust(6, "0"))
    offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
    zone = timezone(-offset if match[8] == "-" else offset)
    year = min(max(year, first_year), last_year)
    return datetime(year, month, day, hour, minute, second, micros, zone).astimezone(UTC)


def parse_seconds(text: str) -> float:
    """Read a Go duration as seconds; raise ValueError with Go's message where it is none."""
    return parse_nanos(text) / 10**9


def parse_nanos(text: str) -> int:
    """Read a Go duration exactly, as nanoseconds; raise ValueError also for more than Go's 292 years."""
    if len(text) > _LONGEST_DURATION:
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
