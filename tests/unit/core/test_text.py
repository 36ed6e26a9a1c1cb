import pytest

from agent.core.text import one_line, printable


@pytest.mark.parametrize(
    ("text", "keep", "shown"),
    [
        ("größe: 1", "", "größe: 1"),
        ("a\tb\r\n\x9b2J", "", "a\ufffdb\ufffd\ufffd\ufffd2J"),
        ("größe:\t1\r\n\x9b2J", "\n\t", "größe:\t1\ufffd\n\ufffd2J"),
        ("\u202eevil\u2028\udc80", "\n", "\ufffdevil\ufffd\ufffd"),
    ],
)
def test_what_would_steer_a_terminal_is_replaced(text, keep, shown):
    assert printable(text, keep=keep) == shown


def test_a_text_on_one_line_has_no_other_white_space_than_single_spaces():
    assert one_line(" no\x1b[31m\n\0 \u2028 \t x ") == "no\ufffd[31m \ufffd x"


def test_a_text_on_one_line_is_cut():
    assert one_line("x" * 5000, 10) == "x" * 10
    assert len(one_line("x" * 5000)) == 1000
