import logging
import re
import sys

from agent.klog import V2, KlogFormatter, set_up


def line(level, message, *args, exc_info=None):
    record = logging.LogRecord("agent.x", level, "/somewhere/lease.py", 42, message, args, exc_info)
    return KlogFormatter().format(record)


def test_a_line_is_klogs():
    text = line(logging.INFO, "Successfully registered node", {"node": "n1"})
    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.\d{6} [ \d]{7} lease\.py:42\] "Successfully registered node" node="n1"', text
    )


def test_strings_are_quoted_and_numbers_are_not():
    fields = {"s": 'a "b"\n', "n": 3, "t": True, "l": [1, "x"], "e": ValueError("no"), "none": None}
    assert line(logging.ERROR, "m", fields).endswith(r'"m" s="a \"b\"\n" n=3 t=true l=[1,"x"] e="no" none=null')


def test_the_first_letter_is_the_severity():
    letters = [line(level, "m")[0] for level in (V2, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)]
    assert letters == ["I", "I", "W", "E", "E"]


def test_a_percent_sign_in_a_phrase_with_fields_is_left_alone():
    assert '"100% done"' in line(logging.INFO, "100% done", {"a": 1})


def test_a_library_that_formats_its_own_message_is_shown_as_it_meant():
    assert '"port 80 is taken"' in line(logging.WARNING, "port %d is taken", 80)


def test_a_traceback_follows_its_line():
    try:
        int("x")
    except ValueError:
        text = line(logging.ERROR, "m", exc_info=sys.exc_info())
    assert text.splitlines()[-1].startswith("ValueError: invalid literal")


def test_verbosity_lets_more_lines_through(capsys):
    log = logging.getLogger("agent.test")
    try:
        for verbosity in (0, 2):
            set_up(verbosity)
            log.log(V2, "detail at %d" % verbosity)  # noqa: UP031
        shown = [text for text in capsys.readouterr().err.splitlines() if "detail" in text]
        assert [text.partition("] ")[2] for text in shown] == ['"detail at 2"']
    finally:
        logging.captureWarnings(False)
        logging.basicConfig(handlers=[logging.NullHandler()], force=True)
