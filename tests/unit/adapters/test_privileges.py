import os
import pwd
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from agent.adapters.privileges import run_as
from agent.core.errors import ConfigError

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def as_nobody(action, seconds=60.0):
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    return run_as(account.pw_uid, account.pw_gid, action, seconds=seconds)


@pytest.fixture
def folder():
    """A folder that everybody may enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@root
def test_it_has_the_rights_of_the_user_and_no_others():
    account = pwd.getpwnam("nobody")
    rights = as_nobody(lambda: f"{os.getresuid()} {os.getresgid()} {os.getgroups()}")
    assert rights == f"{(account.pw_uid,) * 3} {(account.pw_gid,) * 3} []"


@root
def test_what_only_root_may_read_stays_unread(folder):
    secret = folder / "secret"
    secret.touch(mode=0o600)
    (folder / "link").symlink_to(secret)
    assert as_nobody(lambda: str(os.access(folder / "link", os.R_OK))) == "False"


@root
def test_no_process_of_the_user_can_trace_it():
    assert as_nobody(lambda: str(Path("/proc/self/mem").stat().st_uid)) == "0"


def test_a_program_that_it_starts_gets_neither_terminal_nor_environment_of_root(monkeypatch):
    monkeypatch.setenv("ROOTS_SECRET", "x")
    monkeypatch.setenv("https_proxy", "http://proxy.example")

    def action():
        script = "env; cat; readlink /proc/$$/fd/0; cut -d' ' -f6 /proc/$$/stat; pwd"  # 6 is the session
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout

    *environment, stdin, session, folder = as_nobody(action).splitlines()
    assert "ROOTS_SECRET=x" not in environment
    assert "https_proxy=http://proxy.example" in environment
    assert (stdin, folder) == ("/dev/null", "/")
    assert int(session) != os.getsid(0)


def test_its_complaint_is_ours():
    def action():
        raise ConfigError("it is \x1b[31mred")

    with pytest.raises(ConfigError, match=r"^it is \ufffd\[31mred$"):
        as_nobody(action)


def test_what_it_prints_is_ours_but_for_what_steers_a_terminal(capsys):
    def action():
        os.write(2, b"found the cluster\x1b]0;title\x07\n")
        return "done"

    assert as_nobody(action) == "done"
    assert capsys.readouterr().err == "found the cluster\ufffd]0;title\ufffd\n"


def test_a_fifo_does_not_hold_us_for_ever(folder):
    os.mkfifo(folder / "fifo", 0o644)
    with pytest.raises(ConfigError, match="did not end within 1 s"):
        as_nobody((folder / "fifo").read_text, seconds=1)


def test_endless_output_does_not_hold_us_for_ever(capsys):
    def action():
        while True:
            os.write(1, b"x")

    with pytest.raises(ConfigError, match="did not end within 1 s"):
        as_nobody(action, seconds=1)
    assert capsys.readouterr().err


def test_a_program_that_it_leaves_behind_does_not_hold_us():
    def action():
        return str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)

    began = time.monotonic()
    pid = int(as_nobody(action, seconds=300))
    os.kill(pid, 9)
    assert time.monotonic() - began < 300


def test_if_it_dies_that_is_an_error():
    with pytest.raises(ConfigError, match="failed"):
        as_nobody(lambda: os._exit(3))
    with pytest.raises(ConfigError, match="ZeroDivisionError: division by zero"):
        as_nobody(lambda: str(1 / 0))


def test_a_file_that_cannot_be_read_is_one_line(folder):
    with pytest.raises(ConfigError, match=f"^{folder}/none: No such file or directory$"):
        as_nobody((folder / "none").read_text)


def test_a_file_larger_than_the_machine_takes_no_memory(folder):
    (folder / "huge").touch(mode=0o644)
    os.truncate(folder / "huge", 2**40)
    with pytest.raises(ConfigError, match="MemoryError"):
        as_nobody((folder / "huge").read_text)
