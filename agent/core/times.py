"""Times in the texts of others: RFC 3339, and never so far away that a clock could not count on from there."""

import re
from datetime import UTC, datetime, timedelta, timezone

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
_MOST_LETTERS = 64
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
# Leap years beyond both ends: what lies further away becomes one of these, and then the end itself.
_BEFORE, _AFTER = 1968, 2204


def parse_time(text: str) -> datetime:
    """Read a time as Go's RFC 3339 has it, in UTC; one before 1970 or after 2199 becomes that end.

    Raises ValueError where a kubelet could not read it either. An API server stores any year, so a far one must
    do no harm: what is computed from a bounded time stays within the calendar.
    """
    return min(max(_moment(text, _BEFORE, _AFTER), EARLIEST), LATEST)


def exact_time(text: str) -> datetime:
    """The same without an end; OverflowError at both ends of the calendar, for who can do without the time then."""
    return _moment(text, 1, 9999)


def _moment(text: object, first_year: int, last_year: int) -> datetime:
    found = _RFC3339.fullmatch(text) if isinstance(text, str) and len(text) <= _MOST_LETTERS else None
    if found is None:
        raise ValueError("not a time of RFC 3339")
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    micros = int((found[7] or "")[:6].ljust(6, "0"))
    offset = timedelta(hours=int(found[9] or 0), minutes=int(found[10] or 0))
    zone = timezone(-offset if found[8] == "-" else offset)
    year = min(max(year, first_year), last_year)
    return datetime(year, month, day, hour, minute, second, micros, zone).astimezone(UTC)
