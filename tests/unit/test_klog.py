import io
import json
import logging
import os
import re
import sys

from agent.klog import (
    V2,
    V3,
    V4,
    JsonFormatter,
    KlogFormatter,
    PlainFormatter,
    Unquoted,
    redirect,
    set_up,
    set_verbosity,
)


def line(level, message, *args, exc_info=None):
    record = logging.LogRecord("agent.x", level, "/somewhere/lease.py", 42, message, args, exc_info)
    return KlogFormatter().format(record)


def test_a_line_is_klogs():
    text = line(logging.INFO, "Successfully registered node", {"node": "n1"})
    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.\d{6} [ \d]{7} lease\.py:42\] "Successfully registered node" node="n1"', text
    )


def test_strings_are_quoted_and_numbers_are_not():
    fields = {"s": 'a "b"\t\x00é', "n": 3, "t": True, "l": [1, "x"], "e": ValueError("no"), "none": None}
    assert line(logging.ERROR, "m", fields).endswith(r'"m" s="a \"b\"\t\x00é" n=3 t=true l=[1,"x"] e="no" none=null')


def test_an_error_comes_right_after_the_phrase_in_a_line_about_an_error():
    fields = {"sensor": "s", "err": "gone"}
    assert line(logging.ERROR, "m", fields).endswith('"m" err="gone" sensor="s"')
    assert line(logging.INFO, "m", fields).endswith('"m" sensor="s" err="gone"')


def test_a_phrase_may_stay_as_it_is():
    assert line(logging.INFO, Unquoted('FLAG: --v="1"')).endswith('] FLAG: --v="1"')


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
    assert text.splitlines()[-1].startswith("\tValueError: invalid literal")


def test_what_others_wrote_into_an_error_is_no_line_of_the_log_and_moves_no_cursor():
    try:
        {}["one\nE0101 00:00:00.000000 1 x.py:1] forged\x1b[2J\u2028\x9b\udc80" + "a" * 10_000]
    except KeyError as error:
        fault, info = ValueError(error.args[0]), sys.exc_info()
    info = (ValueError, fault, info[2])
    for text in (
        line(logging.ERROR, "m", {"err": fault}, exc_info=info),
        line(logging.ERROR, str(fault), exc_info=info),
        JsonFormatter().format(logging.LogRecord("agent.x", logging.ERROR, "x.py", 1, "m", ({"err": fault},), info)),
    ):
        assert text.encode()
        assert "forged" in text
        assert [found for found in text.splitlines()[1:] if not found.startswith(("\t", " >"))] == []
        assert all(char.isprintable() or char in "\n\t" for char in text)


def test_the_words_of_an_error_are_one_line_of_its_traceback():
    try:
        raise_lines()
    except ValueError:
        text = line(logging.ERROR, "m", exc_info=sys.exc_info())
    assert text.splitlines()[-1] == "\tValueError: one\\nE0101 two"


def raise_lines():
    raise ValueError("one\nE0101 two")


def test_a_traceback_without_end_is_cut():
    def ping(depth):
        return pong(depth + 1)

    def pong(depth):
        return ping(depth + 1)

    try:
        ping(0)
    except RecursionError:
        text = line(logging.ERROR, "m", exc_info=sys.exc_info())
    assert len(text.splitlines()) < 100
    assert text.splitlines()[-1].startswith("\tRecursionError")


def test_a_value_of_several_lines_is_a_block():
    assert line(logging.ERROR, "m", {"err": "one\ntwo", "n": 1}).endswith('"m" err=<\n\tone\n\ttwo\n > n=1')
    assert line(logging.ERROR, "m", {"err": "one\n"}).endswith('"m" err=<\n\tone\n >')


def as_json(level, message, *args):
    record = logging.LogRecord("agent.x", level, "/some/agent/controllers/lease.py", 42, message, args, None)
    return json.loads(JsonFormatter().format(record)), record


def test_json_has_kubelets_keys():
    entry, record = as_json(V2, "Recording event", {"node": "n1", "count": 2})
    assert list(entry.items()) == [
        ("ts", record.created * 1000),
        ("caller", "controllers/lease.py:42"),
        ("msg", "Recording event"),
        ("v", 2),
        ("node", "n1"),
        ("count", 2),
    ]


def test_an_error_in_json_has_no_verbosity():
    entry, _ = as_json(logging.ERROR, "command failed", {"err": ValueError("no")})
    assert (entry["err"], "v" in entry) == ("no", False)


def test_vmodule_raises_the_verbosity_of_files_whose_name_matches(capsys):
    log = logging.getLogger("agent.test")
    try:
        set_up(2, vmodule=[("test_k*", 4), ("test_klog", 0), ("other", 9)])
        log.log(V4, "four")
        log.log(V4 - 1, "five")
        set_up(2, vmodule=[("other", 9)])
        log.log(V4, "four again")
        log.log(V2, "two")
        shown = [text.partition("] ")[2] for text in capsys.readouterr().err.splitlines()]
        assert shown == ['"four"', '"two"']
    finally:
        logging.captureWarnings(False)
        logging.basicConfig(handlers=[logging.NullHandler()], force=True)


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


def test_the_journal_gets_priorities_and_no_second_timestamp(tmp_path, monkeypatch):
    log = logging.getLogger("agent.test")
    with (tmp_path / "journal").open("w+") as stream:
        found = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        monkeypatch.setattr("sys.stderr", stream)
        try:
            set_up(0)
            log.info("Started kubelet", {"node": "n1"})
            log.error("Unable to start", {"err": "two\nlines"})
        finally:
            logging.captureWarnings(False)
            logging.basicConfig(handlers=[logging.NullHandler()], force=True)
        stream.seek(0)
        lines = [re.sub(r":\d+\]", ":N]", text) for text in stream.read().splitlines()]
    assert lines == [
        '<6>test_klog.py:N] "Started kubelet" node="n1"',
        '<3>test_klog.py:N] "Unable to start" err=<',
        "<3>\ttwo",
        "<3>\tlines",
        "<3> >",
    ]


def test_a_journal_that_is_not_our_stderr_changes_nothing(monkeypatch, capsys):
    monkeypatch.setenv("JOURNAL_STREAM", "1:2")
    try:
        set_up(0)
        logging.getLogger("agent.test").info("Started kubelet")
    finally:
        logging.captureWarnings(False)
        logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    assert re.match(r"I\d{4} ", capsys.readouterr().err)


def test_verbosity_can_change_while_patterns_stay(capsys):
    set_up(0, vmodule=[("test_klog", 3)])
    set_verbosity(4)
    logging.getLogger("agent.x").log(V4, "seen")
    set_verbosity(0)
    logging.getLogger("agent.x").log(V4, "hidden")
    logging.getLogger("agent.x").log(V3, "raised")
    set_up(0)
    told = capsys.readouterr().err
    assert ("seen" in told, "hidden" in told, "raised" in told) == (True, False, True)


def plain(level, message, *args):
    return PlainFormatter().format(logging.LogRecord("agent.x", level, "/x/join.py", 42, message, args, None))


def test_a_command_that_somebody_waits_for_has_plain_lines():
    assert plain(logging.INFO, "Found the cluster", {"server": "https://c:6443"}) == (
        "Found the cluster (server: https://c:6443)"
    )
    assert plain(logging.WARNING, "Retrying", {"err": "EOF\n\x1b[2J", "giveUpAfter": "5s"}) == (
        "warning: Retrying: EOF \ufffd[2J (giveUpAfter: 5s)"
    )
    assert plain(logging.ERROR, "It is of no use") == "error: It is of no use"


def test_the_log_goes_on_in_another_stream(capsys):
    set_up(0)
    other = io.StringIO()
    redirect(other)
    logging.getLogger("agent.x").info("Moved")
    assert '"Moved"' in other.getvalue()
    assert "Moved" not in capsys.readouterr().err
