"""The parser of answers: whatever the pieces in which they arrive, and whatever a server sends."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.adapters.http1 import MOST_HEAD_BYTES, HttpError, ResponseParser
from tests.faults.fuzz import RAW

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def parsed(*pieces, method="GET", eof=False):
    parser = ResponseParser(method)
    for piece in pieces:
        parser.feed(piece)
    if eof:
        parser.feed_eof()
    return parser


def test_an_answer_with_a_length():
    parser = parsed(OK + b"Content-Length: 2\r\nRetry-After:  7 \r\n\r\n{}")
    assert (parser.status, parser.reason, parser.headers["retry-after"]) == (200, "OK", "7")
    assert parser.take() == b"{}"
    assert parser.is_reusable


def test_a_chunked_answer_with_extensions_and_trailers():
    parser = parsed(CHUNKED + b"3;x=y\r\nabc\r\nA \r\n0123456789\r\n0\r\nX-Trailer: y\r\n\r\n")
    assert parser.take() == b"abc0123456789"
    assert parser.is_reusable


def test_a_part_of_a_body_is_there_before_its_end():
    parser = parsed(CHUNKED, b"5\r\nab")
    assert (parser.has_head, parser.take(), parser.is_complete) == (True, b"ab", False)
    parser.feed(b"c")
    assert parser.take() == b"c"


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_body_without_a_length_ends_with_the_connection(version):
    parser = parsed(b"HTTP/%b 200 OK\r\n\r\nab" % version, b"c")
    assert not parser.is_complete
    parser.feed_eof()
    assert (parser.take(), parser.is_complete, parser.is_reusable) == (b"abc", True, False)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("CONNECT", 200)], ids=str)
def test_an_answer_that_has_no_body_whatever_its_headers_say(method, status):
    parser = parsed(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status, method=method)
    assert parser.is_reusable


def test_informational_answers_come_before_the_answer():
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    parser = parsed(interim + OK + b"Content-Length: 0\r\n\r\n")
    assert (parser.status, parser.headers, parser.is_reusable) == (200, {"content-length": "0"}, True)


@pytest.mark.parametrize(
    "content",
    [
        OK + b"Connection: Close\r\nContent-Length: 0\r\n\r\n",
        OK + b"Connection: x, close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        OK + b"Content-Length: 0\r\n\r\nmore",
    ],
)
def test_a_connection_that_cannot_take_another_request(content):
    parser = parsed(content)
    assert parser.is_complete
    assert not parser.is_reusable


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x15\x03\x01", "malformed HTTP response"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 99999 OK\r\n\r\n", "malformed HTTP response"),
        (OK + b"X: a\nY: b\r\n\r\n", "malformed HTTP response"),
        (OK + b"X: a\r\n folded\r\n\r\n", "malformed MIME header line"),
        (OK + b"X : a\r\n\r\n", "malformed MIME header line"),
        (OK + b"Content-Length: +2\r\n\r\n{}", "bad Content-Length"),
        (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "bad Content-Length"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "unsupported transfer encoding"),
        (CHUNKED + b"0x1\r\na\r\n", "invalid byte in chunk length"),
        (CHUNKED + b"1_0\r\n", "invalid byte in chunk length"),
        (CHUNKED + b"\r\n", "invalid byte in chunk length"),
        (CHUNKED + b"F" * 16 + b"\r\n", "invalid byte in chunk length"),
        (CHUNKED + b"1;" + b"x" * 5000, "malformed chunked encoding"),
        (CHUNKED + b"1\r\nabc", "malformed chunked encoding"),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 20_000, "headers exceeded 65536 bytes"),
        (OK + b"X-A: " + b"b" * MOST_HEAD_BYTES, "headers exceeded 65536 bytes"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 6, "too many 1xx informational responses"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
    ],
    ids=lambda value: str(value[:60]),
)
def test_what_is_malformed_is_refused_with_the_reason(content, words):
    with pytest.raises(HttpError, match=words):
        parsed(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", r"\AEOF"), (b"HTTP", "unexpected EOF"), (OK + b"Content-Length: 3\r\n\r\n{}", "unexpected EOF")],
)
def test_a_connection_that_ends_too_soon(content, words):
    with pytest.raises(HttpError, match=words):
        parsed(content, eof=True)


def outcome(*pieces):
    """Everything that a caller can see of an answer in these pieces."""
    parser, error = ResponseParser("GET"), False
    try:
        for piece in pieces:
            parser.feed(piece)
        parser.feed_eof()
    except HttpError:
        error = True
    return (
        error,
        parser.status,
        parser.headers,
        bytes(parser.body),
        parser.is_complete,
        parser.is_reusable and not error,
    )


def pieces_of(content, cuts):
    bounds = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    return [content[start:end] for start, end in pairwise(bounds)]


bodies = st.binary(max_size=200)
chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=5).map(
    lambda parts: b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
)
good = st.one_of(
    bodies.map(lambda body: OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)),
    chunks.map(lambda body: CHUNKED + body),
    bodies.map(lambda body: b"HTTP/1.0 200 OK\r\n\r\n" + body),
    chunks.map(lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + body),
)


@st.composite
def mutated(draw):
    """An answer that something has happened to."""
    content = bytearray(draw(good | st.sampled_from([raw[:2000] for raw in RAW])))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        content[at : at + draw(st.integers(0, 5))] = draw(
            st.binary(max_size=5) | st.sampled_from([b"\r\n", b"0", b";"])
        )
    return bytes(content)


@given(mutated() | good | st.binary(max_size=300), st.lists(st.integers(0, 2**16), max_size=12))
def test_the_pieces_in_which_an_answer_arrives_do_not_matter(content, cuts):
    whole = outcome(content)
    assert outcome(*pieces_of(content, cuts)) == whole
    assert outcome(*(content[at : at + 1] for at in range(len(content)))) == whole


@given(good, st.lists(st.integers(0, 2**16), max_size=12))
def test_a_good_answer_is_complete(content, cuts):
    error, status, *_, is_complete, _ = outcome(*pieces_of(content, cuts))
    assert (error, status, is_complete) == (False, 200, True)
