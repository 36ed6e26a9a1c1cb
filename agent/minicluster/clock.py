"""Times as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent.core.times import parse_time

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 31536000


def utc_now() -> datetime:
    """The present, with its zone."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Seconds, UTC: the API's `Time`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str | None) -> datetime | None:
    """The moment a `Time` or `MicroTime` names, or None when there is none."""
    return parse_time(text) if text else None


def since(text: str | None, now: datetime) -> str:
    """The age that kubectl prints."""
    moment = parse(text)
    return "<unknown>" if moment is None else human(now - moment)


def human(duration: timedelta) -> str:
    """A duration with at most two units, fewer as it grows, the way kubectl prints an AGE."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    for limit, unit, letter, rest, rest_letter in (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    ):
        if seconds < limit:
            left = (seconds % unit) // rest if rest else 0
            return f"{seconds // unit}{letter}" + (f"{left}{rest_letter}" if left else "")
    return f"{seconds // _YEAR}y"
