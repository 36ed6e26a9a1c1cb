"""kill -9 before each change of a file that a bootstrap makes: the next start goes on, and the last one completes."""

import signal
from itertools import count

import pytest

from agent.core.x509 import private_key, read_certificates
from tests.cluster.waiting import eventually
from tests.join.machine import Machine


@pytest.mark.parametrize("rotate", ["false", "true"], ids=["at once", "in the background"])
def test_killed_before_each_change_of_a_file_it_completes_all_the_same(machine, rotate):
    steps = 0
    for step in count(1):
        process = machine.start(
            f"--rotate-certificates={rotate}",
            module="tests.join.killed",
            KILL_AT=str(step),
            KILL_IN=str(machine.folder),
        )
        eventually(lambda process=process: not process.running or _is_complete(machine), within=40)
        if process.running:
            break
        assert process.stop() == -signal.SIGKILL
        steps = step
    # Files that were finished in an earlier life are not written again, so later starts have fewer steps.
    assert steps >= 5
    assert machine.refusals() == []
    pem = machine.current.read_text()
    assert read_certificates(pem)
    assert private_key(pem)


def _is_complete(machine: Machine) -> bool:
    """Whether the Node is Ready, and all files are there and nothing else: no key that waits, and no draft."""
    others = {path.name for path in machine.pki.glob("*") if path.suffix != ".pem"}
    return machine.current.exists() and others == {"kubelet.crt", "kubelet.key"} and machine.is_ready()
