from datetime import datetime, timedelta, timezone

from agent.core.facts import micro_timestamp, timestamp

MOMENT = datetime(2026, 1, 2, 5, 4, 5, 600, timezone(timedelta(hours=2)))


def test_times_are_written_in_utc():
    assert timestamp(MOMENT) == "2026-01-02T03:04:05Z"
    assert micro_timestamp(MOMENT) == "2026-01-02T03:04:05.000600Z"
