import io
import logging
import subprocess
import sys
import threading
import time

import pytest

from agent.klog import KlogFormatter, Unquoted
from agent.repeats import RepeatsHandler


@pytest.fixture
def stream():
    return io.StringIO()


class NoTimer(threading.Timer):
    """A timer that never comes: time is in the records alone."""

    def start(self):
        pass


@pytest.fixture
def handler(stream):
    handler = RepeatsHandler(stream, NoTimer)
    handler.setFormatter(KlogFormatter())
    yield handler
    handler.close()


def logged(handler, seconds, phrase="Failed", fields=None, *, level=logging.ERROR, exc_info=None):
    record = logging.LogRecord(
        "agent.x", level, "/x/lease.py", 42, phrase, (fields,) if isinstance(fields, dict) else fields, exc_info
    )
    record.created = 1_000_000 + seconds
    handler.handle(record)


def lines(stream):
    return [line.partition("] ")[2] for line in stream.getvalue().splitlines()]


def test_the_first_of_equal_lines_is_written_at_once_and_the_others_as_a_count(handler, stream):
    for number in range(5):
        logged(handler, number / 100, fields={"err": "EOF"})
    assert lines(stream) == ['"Failed" err="EOF"']
    logged(handler, 1.0, "Other")
    assert lines(stream) == ['"Failed" err="EOF"', '"Failed" err="EOF" count=4', '"Other"']


def test_lines_of_a_second_ago_or_with_other_fields_are_no_repeats(handler, stream):
    logged(handler, 0, fields={"err": "EOF"})
    logged(handler, 0.1, fields={"err": "reset"})
    logged(handler, 0.2, fields={"err": "EOF"}, level=logging.INFO)
    logged(handler, 1.0, fields={"err": "EOF"})
    assert lines(stream) == ['"Failed" err="EOF"', '"Failed" err="reset"', '"Failed" err="EOF"', '"Failed" err="EOF"']


def test_what_goes_on_and_on_is_a_line_per_second(handler, stream):
    for number in range(41):
        logged(handler, number / 10)
    handler.close()
    counts = [9, 10, 10, 10, 1]
    assert lines(stream) == ['"Failed"', *(f'"Failed" count={count}' for count in counts)]
    assert 1 + sum(counts) == 41


def test_what_was_only_counted_is_written_at_the_end(handler, stream):
    logged(handler, 0)
    logged(handler, 0.1)
    handler.close()
    assert lines(stream) == ['"Failed"', '"Failed" count=1']


def test_a_clock_that_is_set_back_silences_nothing(handler, stream):
    logged(handler, 0)
    logged(handler, -3600)
    assert lines(stream) == ['"Failed"', '"Failed"']


def test_a_phrase_of_a_library_and_one_that_is_not_quoted_stay_as_they_are(handler, stream):
    for phrase, values in (("port %d is taken", (80,)), (Unquoted('FLAG: --v="1"'), None)):
        for _ in range(2):
            logged(handler, 0, phrase, values)
    handler.close()
    assert lines(stream)[2:] == ['"port 80 is taken" count=1', 'FLAG: --v="1" count=1']


def test_a_traceback_is_never_a_repeat(handler, stream):
    for _ in range(2):
        logged(handler, 0, exc_info=(ValueError, ValueError("x"), None))
    assert stream.getvalue().count("ValueError: x") == 2


def test_a_count_is_written_even_if_nothing_follows(stream):
    handler = RepeatsHandler(stream)
    handler.setFormatter(KlogFormatter())
    for _ in range(3):
        handler.handle(logging.LogRecord("agent.x", logging.ERROR, "/x/lease.py", 42, "Failed", None, None))
    deadline = time.monotonic() + 60
    while len(lines(stream)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert lines(stream) == ['"Failed"', '"Failed" count=2']


def test_a_process_that_ends_loses_no_count():
    thrice = "for _ in range(3): logging.getLogger('agent.x').error('Failed')"
    script = f"from agent import klog; import logging; klog.set_up(0)\n{thrice}"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    assert [line.partition("] ")[2] for line in said.splitlines()] == ['"Failed"', '"Failed" count=2']
