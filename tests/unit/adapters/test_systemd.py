import os
import socket

import pytest

from agent.adapters.systemd import Systemd


@pytest.fixture(params=["path", "abstract"])
def mailbox(request, tmp_path, monkeypatch):
    """Where a service manager would read, under both kinds of address."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@fake-kubelet-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(name.replace("@", "\0", 1))
        door.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        yield door


def test_what_is_told_arrives_as_one_message(mailbox):
    Systemd.from_environment().notify("READY=1", "STATUS=n1: Ready")
    assert mailbox.recv(4096) == b"READY=1\nSTATUS=n1: Ready"


def test_children_do_not_find_the_way_to_the_service_manager(mailbox, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert Systemd.from_environment().watchdog_seconds == 30
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & os.environ.keys()


def test_a_watchdog_of_another_process_is_not_ours(monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert Systemd.from_environment().watchdog_seconds is None


def test_a_service_manager_that_is_away_misses_it_and_nothing_else_happens(tmp_path):
    Systemd(str(tmp_path / "nobody")).notify("READY=1")
    Systemd().notify("READY=1")
