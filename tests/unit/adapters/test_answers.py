"""Whatever a server sends is a bounded object, or Unavailable."""

import pytest

from agent.adapters.answers import MOST_BYTES, decoded, page, refusal, watch_event
from agent.ports import Conflict, Unavailable


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b'"{}"',
        b"{",
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"a": 1e400}',
        b'{"a": NaN}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a":' * 101 + b"1" + b"}" * 101,
        b'{"a":' * 100_000,
        b'{"a": [' + b"{}," * 200_000 + b"{}]}",
    ],
    ids=lambda content: str(content[:12]),
)
def test_what_is_no_object_of_any_kind_is_no_answer(content):
    with pytest.raises(Unavailable, match="no Kubernetes object"):
        decoded(content)


def test_a_large_and_nested_object_is_an_answer():
    assert decoded(b'{"a":' * 99 + b"{}" + b"}" * 99)
    assert decoded(b'{"a": "' + b"x" * (MOST_BYTES - 10) + b'"}')


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        ("10000-01-01T23:58:59Z", "9999-12-31T23:58:59Z"),
        ("10000-01-01T23:58:59.000000Z", "9999-12-31T23:58:59.000000Z"),
        ("-0001-12-31T00:01:00Z", "0001-01-01T00:01:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_a_time_that_nobody_can_read_is_read_as_the_end_of_the_calendar(printed, read):
    assert decoded(b'{"acquireTime":"%s"}' % printed.encode()) == {"acquireTime": read}


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"metadata": {}}', b'{"metadata": {"resourceVersion": 5}}'])
def test_a_list_has_a_version(content):
    with pytest.raises(Unavailable, match="no list"):
        page(content)


@pytest.mark.parametrize("line", [b"{}", b'{"type": 5, "object": {}}', b'{"type": "ADDED"}', b"\xff"])
def test_a_line_of_a_watch_has_a_type_and_an_object(line):
    with pytest.raises(Unavailable, match="no event of a watch"):
        watch_event(line)


@pytest.mark.parametrize("message", [None, 5, ["x"] * 1000, {}, True])
def test_a_refusal_whose_message_makes_no_sense_is_told_by_its_number(message):
    assert str(refusal(409, {"kind": "Status", "message": message}, None)) == "HTTP 409"


def test_nothing_that_a_terminal_would_obey_is_kept_of_a_message():
    error = refusal(409, {"kind": "Status", "message": "no\x1b[31m\n\0 \u202e" + "x" * 5000}, None)
    assert isinstance(error, Conflict)
    assert str(error)[:12] == "no\ufffd[31m \ufffd \ufffdx"
    assert len(str(error)) == 1000


@pytest.mark.parametrize("header", ["-1", "²", "٣", "soon", "1.5", "Fri, 31 Dec 9999 23:59:59 GMT", "", " 1"])
def test_what_is_no_number_of_seconds_asks_for_no_patience(header):
    assert refusal(503, {}, header).retry_after_seconds is None
