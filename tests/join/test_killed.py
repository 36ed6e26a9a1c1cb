"""kill -9 before each change of a file that a bootstrap makes: the next start completes it."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from agent.core.x509 import private_key, read_certificates
from tests.cluster.machine import Machine
from tests.cluster.waiting import eventually

KEPT_KEY = {"open .kubelet-client.key.tmp.draft", "os.rename .kubelet-client.key.tmp.draft"}
FORGOTTEN_KEY = {"os.remove kubelet-client.key.tmp"}
PAIR = {
    "os.mkdir pki",
    "open .kubelet-client.draft",
    "os.rename .kubelet-client.draft",
    "os.symlink kubelet-client-updated.pem",
    "os.rename kubelet-client-updated.pem",
}
KUBECONFIG = {"open .kubelet.conf.draft", "os.rename .kubelet.conf.draft"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rotate", "changes"),
    [
        pytest.param("false", KEPT_KEY | FORGOTTEN_KEY | PAIR | KUBECONFIG, id="at once"),
        pytest.param("true", PAIR | KUBECONFIG, id="in the background"),
    ],
)
def test_killed_before_any_change_of_a_file_it_completes_all_the_same(machine, rotate, changes):
    killed_before = set()
    for step in count(1):
        with fresh(machine, step) as one:
            where = {"KILL_AT": str(step), "KILL_IN": str(one.folder)}
            # Without a server: its certificate is none that a bootstrap makes.
            flags = (f"--rotate-certificates={rotate}", "--enable-server=false")
            first = one.start(*flags, module="tests.cluster.killed", **where)
            eventually(lambda first=first, one=one: not first.running or _is_complete(one))
            if first.running:
                break
            assert first.stop() == -signal.SIGKILL
            killed_before.update(re.findall(r"^killed before (.*)$", one.log_text(), re.MULTILINE))
            one.start(*flags)
            eventually(lambda one=one: _is_complete(one))
            _assert_member(one)
    assert changes <= killed_before, changes - killed_before


@contextmanager
def fresh(machine: Machine, step: int) -> Iterator[Machine]:
    """A machine that has nothing but the token: what an earlier life has finished would not be written again."""
    folder = machine.folder / str(step)
    folder.mkdir()
    made = Machine(machine.plane, f"{machine.name}-{step}", folder)
    made.give_token()
    try:
        yield made
    finally:
        made.stop()


def _is_complete(machine: Machine) -> bool:
    """Whether the Node is Ready, and all files are there and nothing else: no key that waits, and no draft."""
    others = {path.name for path in machine.pki.glob("*") if path.suffix != ".pem"}
    return machine.current.exists() and not others and machine.is_ready()


def _assert_member(machine: Machine) -> None:
    assert machine.refusals() == []
    pem = machine.current.read_text()
    assert read_certificates(pem)
    assert private_key(pem)
