"""kill -9 before each change of a file that a bootstrap makes: the next start goes on, and the last one completes."""

import signal
from itertools import count

import pytest

from agent.core.x509 import private_key, read_certificates
from tests.cluster.waiting import eventually


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
        eventually(lambda process=process: not process.running or "Started kubelet" in machine.log_text(), within=20)
        if process.running:
            break
        assert process.stop() == -signal.SIGKILL
        steps = step
    # Files that were finished in an earlier life are not written again, so later starts have fewer steps.
    assert steps >= 3
    machine.wait_until_ready()
    assert machine.refusals() == []
    pem = machine.current.read_text()
    assert read_certificates(pem)
    assert private_key(pem)
    left = {path.name for path in machine.pki.iterdir()} - {machine.current.name}
    assert all(name.endswith(".pem") for name in left), left  # no key that waits, and no draft
