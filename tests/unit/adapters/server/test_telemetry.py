import logging

import pytest

from agent.adapters.server.telemetry import RateLimitedLog
from tests.fakes import FakeClock

log = logging.getLogger("agent.test")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def limited(clock):
    return RateLimitedLog(log, clock)


def fail(limited, number):
    """Two places that fail."""
    try:
        if number:
            int("\x1b" * number)
        {}["absent"]
    except (ValueError, KeyError) as error:
        limited.unexpected("Unable to answer a request", {"path": "/\x1b[31m\nforged"}, error)


def test_a_phrase_is_logged_once_a_minute_and_then_with_how_many_were_suppressed(limited, clock, caplog):
    for _ in range(1000):
        limited.log(logging.ERROR, "Unable to do it", {"err": "no"})
    limited.log(logging.ERROR, "Unable to do another thing", {"err": "no"})
    clock.elapsed = 59
    limited.log(logging.ERROR, "Unable to do it", {"err": "no"})
    assert [record.message for record in caplog.records] == ["Unable to do it", "Unable to do another thing"]
    clock.elapsed = 60
    limited.log(logging.ERROR, "Unable to do it", {"err": "no"})
    assert caplog.records[-1].args == {"err": "no", "suppressed": 1000}


def test_an_unexpected_error_is_logged_with_its_stack_once_a_minute_for_each_place(limited, caplog):
    for _ in range(50):
        fail(limited, 0)
        fail(limited, 3)
    assert [record.exc_info[0] for record in caplog.records] == [KeyError, ValueError]


def test_nothing_of_a_request_is_logged_as_it_came(limited, caplog):
    fail(limited, 1)
    limited.log(
        logging.ERROR, "Forbidden", {"user": "\udcff\u202e\x9b\x7fx", "err": ValueError("a\nb"), "long": "x" * 9999}
    )
    first, second = caplog.records
    assert first.args == {"path": "/\\x1b[31m\\nforged"}
    assert second.args == {"user": "\\udcff\\u202e\\u009b\\x7fx", "err": "a\\nb", "long": "x" * 256}


def test_what_is_not_logged_is_not_counted(clock, caplog):
    quiet = logging.getLogger("agent.quiet")
    quiet.setLevel(logging.ERROR)
    limited = RateLimitedLog(quiet, clock)
    limited.log(logging.INFO, "Forbidden", {"user": "a"})
    quiet.setLevel(logging.INFO)
    limited.log(logging.INFO, "Forbidden", {"user": "b"})
    assert [record.args for record in caplog.records] == [{"user": "b"}]
